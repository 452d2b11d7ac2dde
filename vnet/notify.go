package vnet

import (
	"net/url"
	"regexp"
)

// Notify is where a tenant is told of what happens to their leases.
type Notify struct {
	Tenant TenantID `json:"tenant"`
	URL    string   `json:"url,omitempty"`    // to which events are posted; "": none
	Mail   string   `json:"mail,omitempty"`   // address; "": none
	Secret string   `json:"secret,omitempty"` // by which what is posted is signed
}

// Bounds of where notices go: those of an address are in RFC 5321, section 4.5.3.1.3.
const (
	mostNotifyURL = 2048
	mostMail      = 254
)

// mailAddress is what addresses are taken for: no comments, no quotes, nothing that
// a header or a command line could end at.
var mailAddress = regexp.MustCompile(`^[A-Za-z0-9_+][A-Za-z0-9._%+-]*@[A-Za-z0-9][A-Za-z0-9.-]*$`)

// Check refuses what nothing can be sent to.
func (n Notify) Check() error {
	if n.URL == "" && n.Mail == "" {
		return &FieldError{Path: "url", Problem: "state a url, a mail address, or both"}
	}
	if n.URL != "" {
		if err := CheckNotifyURL(n.URL); err != nil {
			return err
		}
	}
	if n.Mail != "" {
		return CheckMail("mail", n.Mail)
	}
	return nil
}

// CheckNotifyURL refuses what no events can be posted to.
func CheckNotifyURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || len(text) > mostNotifyURL || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return &FieldError{Path: "url", Problem: "is not an address such as https://HOST/PATH of at most 2048 characters, without user and fragment"}
	}
	return nil
}

// CheckMail refuses an address of which a path says where it was stated.
func CheckMail(path, text string) error {
	if len(text) > mostMail || !mailAddress.MatchString(text) {
		return &FieldError{Path: path, Problem: "is not an address such as alice@example.org"}
	}
	return nil
}
