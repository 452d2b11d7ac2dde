package vxdl

import (
	"bytes"
	"encoding/xml"
	"strings"
)

// printer writes elements, two spaces deeper for each level.
type printer struct {
	text  bytes.Buffer
	depth int
}

// leaf writes <name>text</name>.
func (p *printer) leaf(name, text string) {
	p.indent()
	p.text.WriteString("<" + name + ">")
	// A bytes.Buffer takes every write.
	_ = xml.EscapeText(&p.text, []byte(text))
	p.text.WriteString("</" + name + ">\n")
}

// optional is a leaf unless the text is empty.
func (p *printer) optional(name, text string) {
	if text != "" {
		p.leaf(name, text)
	}
}

// inside writes an element around what body writes.
func (p *printer) inside(name string, body func()) {
	p.indent()
	p.text.WriteString("<" + name + ">\n")
	p.depth++
	body()
	p.depth--
	p.indent()
	tag, _, _ := strings.Cut(name, " ")
	p.text.WriteString("</" + tag + ">\n")
}

// empty writes <name/>.
func (p *printer) empty(name string) {
	p.indent()
	p.text.WriteString("<" + name + "/>\n")
}

func (p *printer) indent() { p.text.WriteString(strings.Repeat("  ", p.depth)) }
