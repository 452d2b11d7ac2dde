package file

import "sublet/vnet"

// switchTLS is what a switch shows to controllers over TLS.
type switchTLS struct {
	Key         *pemFile `yaml:"key" jsonschema_description:"Its private key in PEM, without a passphrase. Only hosts of the switch and its tenant get it."`
	Certificate *pemFile `yaml:"certificate" jsonschema_description:"That of the key, in PEM."`
	CA          *pemFile `yaml:"ca" jsonschema_description:"Certificates of the authorities, in PEM, of which one must have signed the controllers' certificates, whatever name these have."`
}

// pemFile is a text in PEM.
type pemFile struct {
	Text *content `yaml:"text,omitempty" jsonschema_description:"The text itself." jsonschema:"maxLength=65536"`
	From string   `yaml:"from,omitempty" jsonschema_description:"Instead of text: a file beside this one that has it, read when the request is." jsonschema:"minLength=1"`
}

// pemFiles are those that a switch must state.
func (t *switchTLS) pemFiles() map[string]*pemFile {
	return map[string]*pemFile{"key": t.Key, "certificate": t.Certificate, "ca": t.CA}
}

func (t *switchTLS) readFiles(path string, read func(from string) (string, error)) error {
	if t == nil {
		return nil
	}
	for _, field := range []string{"key", "certificate", "ca"} {
		f := t.pemFiles()[field]
		if f == nil { // null
			return &vnet.FieldError{Path: path + "." + field, Problem: "is missing: write text, or from"}
		}
		file := nodeFile{Text: f.Text, From: f.From}
		if problem := file.readFile(read); problem != "" {
			return &vnet.FieldError{Path: path + "." + field, Problem: problem}
		}
		f.Text, f.From = file.Text, ""
	}
	return nil
}

func (t *switchTLS) options() *vnet.SwitchTLS {
	if t == nil {
		return nil
	}
	return &vnet.SwitchTLS{Key: t.Key.text(), Certificate: t.Certificate.text(), CA: t.CA.text()}
}

// text is what was written, or read; "" of a file that was not.
func (f *pemFile) text() string {
	if f == nil || f.Text == nil {
		return ""
	}
	return string(*f.Text)
}

func tlsForm(t *vnet.SwitchTLS) *switchTLS {
	if t == nil {
		return nil
	}
	text := func(s string) *pemFile {
		c := content(s)
		return &pemFile{Text: &c}
	}
	return &switchTLS{text(t.Key), text(t.Certificate), text(t.CA)}
}
