package file

import (
	"errors"
	"strings"
	"testing"
)

const tlsText = `network: n
nodes:
  - {name: ctl}
switches:
  - {name: s, kind: openflow, controller: ["ssl:ctl:6653"], tls: {key: {from: s.key}, certificate: {text: C}, ca: {from: ca.pem}}}
links:
  - {name: c, ends: [s, ctl], control: true}
`

// Keys and certificates are those of files beside the request; what is missing is
// told where it stands. That these are none is told too: so it is known that they
// arrived.
func TestSwitchTLSIsRead(t *testing.T) {
	read := func(from string) (string, error) {
		if from != "s.key" && from != "ca.pem" {
			return "", errors.New("no such file")
		}
		return from, nil
	}
	for change, want := range map[string]string{
		"":                     "switches[0].tls.key: holds no private key",
		"{from: ca.pem}":       "switches[0].tls.ca: says nothing of what is in the file",
		"s.key":                "switches[0].tls.key: from: no such file",
		", ca: {from: ca.pem}": "tls has no ca",
		"text: C":              "switches[0].tls.certificate: states both text and from",
	} {
		text := tlsText
		switch change {
		case "{from: ca.pem}":
			text = strings.Replace(text, change, "{}", 1)
		case "s.key":
			text = strings.Replace(text, change, "other", 1)
		case "text: C":
			text = strings.Replace(text, change, "text: C, from: ca.pem", 1)
		default:
			text = strings.Replace(text, change, "", 1)
		}
		if _, err := ParseRequestWith("f", []byte(text), read); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: %v, want %s", change, err, want)
		}
	}
}
