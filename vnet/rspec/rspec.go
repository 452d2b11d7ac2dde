// Package rspec reads resource specifications of GENI, version 3 (and version 2
// of ProtoGENI, which has the same words): as requests, and as substrates.
//
// Nodes become nodes, a link of two interfaces a link, one of more a switch
// that joins them. A property's capacity (kbit/s) is the rate of its direction,
// its latency (ms) and packet_loss (a part of 1) are impairments of it. Of more than
// two interfaces, a link to the switch has those of all that its node sends.
// Where a client_id is no name, or stands twice, it becomes one, which is told.
// Images, programs and what the aggregates of GENI are asked for have nothing
// like them in a request: each is returned as a Note, never silently.
package rspec

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"

	"sublet/vnet"
)

// MaxSize bounds a text, in bytes. Entities other than XML's own five are not
// known, so none grows.
const MaxSize = 4 << 20

// Is says whether a text looks like an RSpec: XML whose root is rspec.
func Is(text []byte) bool {
	head := text[:min(len(text), 4096)]
	return bytes.HasPrefix(bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"), []byte("<")) && bytes.Contains(head, []byte("<rspec"))
}

// place of an element in the text.
type place struct{ line, column int }

// document, and what below it is understood. Fields named Others are what is not.
type document struct {
	XMLName xml.Name
	Type    string  `xml:"type,attr"`
	Nodes   []node  `xml:"node"`
	Links   []link  `xml:"link"`
	Others  []other `xml:",any"`
}

type node struct {
	at         place
	ClientID   string       `xml:"client_id,attr"`
	ID         string       `xml:"component_id,attr"`
	Name       string       `xml:"component_name,attr"`
	Manager    string       `xml:"component_manager_id,attr"`
	Exclusive  string       `xml:"exclusive,attr"`
	Types      []sliverType `xml:"sliver_type"`
	Hardware   []hardware   `xml:"hardware_type"`
	Interfaces []iface      `xml:"interface"`
	Services   []container  `xml:"services"`
	Site       *site        `xml:"site"`
	Available  *available   `xml:"available"`
	Others     []other      `xml:",any"`
}

type sliverType struct {
	Name   string  `xml:"name,attr"`
	Xen    *xen    `xml:"xen"`
	Others []other `xml:",any"`
}

// xen is the size of a virtual machine of Emulab: cores and MiB.
type xen struct {
	Cores string `xml:"cores,attr"`
	RAM   string `xml:"ram,attr"`
	Disk  string `xml:"disk,attr"`
}

type iface struct {
	at       place
	ClientID string    `xml:"client_id,attr"`
	ID       string    `xml:"component_id,attr"`
	IPs      []address `xml:"ip"`
}

type address struct {
	Address string `xml:"address,attr"`
	Netmask string `xml:"netmask,attr"`
}

type link struct {
	at         place
	ClientID   string     `xml:"client_id,attr"`
	ID         string     `xml:"component_id,attr"`
	Types      []hardware `xml:"link_type"`
	Refs       []iface    `xml:"interface_ref"`
	Properties []property `xml:"property"`
	Others     []other    `xml:",any"`
}

// property of one direction of a link: kbit/s, ms, and a part of 1.
type property struct {
	at       place
	Source   string `xml:"source_id,attr"`
	Dest     string `xml:"dest_id,attr"`
	Capacity string `xml:"capacity,attr"`
	Latency  string `xml:"latency,attr"`
	Loss     string `xml:"packet_loss,attr"`
}

type (
	hardware struct {
		Name string `xml:"name,attr"`
	}
	site struct {
		ID string `xml:"id,attr"`
	}
	available struct {
		Now string `xml:"now,attr"`
	}
	container struct {
		Executes []execute `xml:"execute"`
		Inside   []other   `xml:",any"`
	}
	// execute is a command that a shell runs when the node begins.
	execute struct {
		Shell   string `xml:"shell,attr"`
		Command string `xml:"command,attr"`
	}
	other struct{ XMLName xml.Name }
)

// parse reads a text.
func parse(name string, text []byte) (document, error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	fail := func(format string, args ...any) error {
		line, column := d.InputPos()
		return failAt(name, place{line, column}, format, args...)
	}
	var doc document
	if len(text) > MaxSize {
		return doc, fail("has %d bytes, more than %d: split it", len(text), MaxSize)
	}
	if err := d.Decode(&doc); err != nil {
		return doc, fail("not XML: %s: correct the text near here", said(err))
	}
	if doc.XMLName.Local != "rspec" {
		return doc, fail("the root is <%s>: an RSpec begins with <rspec>", short(doc.XMLName.Local))
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return doc, nil
		}
		if err != nil {
			return doc, fail("not XML: %s: correct the text near here", said(err))
		}
		if _, another := token.(xml.StartElement); another {
			return doc, fail("a second root begins here: keep one")
		}
	}
}

// said is what the decoder says, on one line.
func said(err error) string {
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return short(syntax.Msg)
	}
	return short(err.Error())
}

func failAt(file string, at place, format string, args ...any) error {
	return &vnet.InputError{File: file, Line: max(at.line, 1), Column: max(at.column, 1), Problem: fmt.Sprintf(format, args...)}
}

// UnmarshalXML notes where the element stands.
func (n *node) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	type plain node
	n.at.line, n.at.column = d.InputPos()
	return d.DecodeElement((*plain)(n), &start)
}

// UnmarshalXML notes where the element stands.
func (l *link) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	type plain link
	l.at.line, l.at.column = d.InputPos()
	return d.DecodeElement((*plain)(l), &start)
}

// UnmarshalXML notes where the element stands.
func (p *property) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	type plain property
	p.at.line, p.at.column = d.InputPos()
	return d.DecodeElement((*plain)(p), &start)
}

// UnmarshalXML notes where the element stands.
func (i *iface) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	type plain iface
	i.at.line, i.at.column = d.InputPos()
	return d.DecodeElement((*plain)(i), &start)
}

// id of an interface: a request's own, else an advertisement's.
func (i iface) id() string {
	if i.ClientID != "" {
		return i.ClientID
	}
	return i.ID
}

// short bounds what a message quotes of a document.
func short(word string) string {
	const most = 60
	if len(word) > most {
		word = word[:most] + "..."
	}
	quoted := fmt.Sprintf("%q", word)
	return quoted[1 : len(quoted)-1]
}
