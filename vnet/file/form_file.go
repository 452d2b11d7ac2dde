package file

import (
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// nodeFile is a file that a node finds when it begins.
type nodeFile struct {
	Path  string   `yaml:"path" jsonschema_description:"From the root of the node, without . and .. Directories on the way are made." jsonschema:"pattern=^/"`
	Text  *content `yaml:"text,omitempty" jsonschema_description:"What is in it, in UTF-8." jsonschema:"maxLength=65536"`
	From  string   `yaml:"from,omitempty" jsonschema_description:"Instead of text: a file beside this one that has it, read when the request is." jsonschema:"minLength=1"`
	Mode  string   `yaml:"mode,omitempty" jsonschema_description:"Its permissions in octal digits. Default: 0644." jsonschema:"pattern=^0?[0-7]{3}$"`
	Owner string   `yaml:"owner,omitempty" jsonschema_description:"User of the node whose it is: a name or a number, and a group behind a colon if it is another. Default: root." jsonschema:"pattern=^[A-Za-z0-9_]"`
}

func (f nodeFile) file() vnet.File {
	made := vnet.File{Path: f.Path, Mode: f.Mode, Owner: f.Owner}
	if f.Text != nil {
		made.Text = string(*f.Text)
	}
	return made
}

func nodeFileForm(f vnet.File) nodeFile {
	text := content(f.Text)
	return nodeFile{Path: f.Path, Text: &text, Mode: f.Mode, Owner: f.Owner}
}

// content is the text of a file.
type content string

// MarshalYAML writes lines as lines where YAML needs no escapes for them.
func (c content) MarshalYAML() (any, error) {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: string(c), Style: yaml.DoubleQuotedStyle}
	if c.plain() {
		n.Style = yaml.LiteralStyle
	}
	return n, nil
}

func (c content) plain() bool {
	text := string(c)
	first := strings.TrimLeft(text, " \t\n")
	return first == text && strings.HasSuffix(text, "\n") && !strings.HasSuffix(text, "\n\n") && text != "\n" &&
		!strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

// readFiles puts the text of files that state from into their place.
func (f *request) readFiles(read func(from string) (string, error)) error {
	if err := f.topology.readFiles("", read); err != nil {
		return err
	}
	for i := range f.Stages {
		if f.Stages[i].Add == nil {
			continue
		}
		if err := f.Stages[i].Add.readFiles(index("stages", i)+".add.", read); err != nil {
			return err
		}
	}
	return nil
}

func (f *topology) readFiles(path string, read func(from string) (string, error)) error {
	for i := range f.Nodes {
		if err := f.Nodes[i].readFiles(index(path+"nodes", i), read); err != nil {
			return err
		}
	}
	for i := range f.Routers {
		if err := f.Routers[i].readFiles(index(path+"routers", i), read); err != nil {
			return err
		}
		if err := f.Routers[i].FRR.readFile(index(path+"routers", i)+".frr", read); err != nil {
			return err
		}
	}
	for i := range f.Switches {
		if err := f.Switches[i].TLS.readFiles(index(path+"switches", i)+".tls", read); err != nil {
			return err
		}
	}
	return nil
}

func (f *frr) readFile(path string, read func(from string) (string, error)) error {
	if f == nil {
		return nil
	}
	file := nodeFile{Text: f.Text, From: f.From}
	if problem := file.readFile(read); problem != "" {
		return &vnet.FieldError{Path: path, Problem: problem}
	}
	f.Text, f.From = file.Text, ""
	return nil
}

func (f *setup) readFiles(path string, read func(from string) (string, error)) error {
	for i := range f.Files {
		if problem := f.Files[i].readFile(read); problem != "" {
			return &vnet.FieldError{Path: index(path+".files", i), Problem: problem}
		}
	}
	return nil
}

func index(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

func (f *nodeFile) readFile(read func(from string) (string, error)) (problem string) {
	switch {
	case f.From == "" && f.Text == nil:
		return "says nothing of what is in the file: write text, or from"
	case f.From == "":
		return ""
	case f.Text != nil:
		return "states both text and from: keep one of them"
	}
	text, err := read(f.From)
	if err != nil {
		return "from: " + err.Error()
	}
	c := content(text)
	f.Text, f.From = &c, ""
	return ""
}
