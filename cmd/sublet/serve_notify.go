package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"sublet/server"
	"sublet/vnet"
)

// notifyOptions are the flags of serve about notices that go out.
type notifyOptions struct {
	url, key, mail, sendmail, from string
	allow                          []string
}

func (o *notifyOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.url, "notify-url", "", "post everybody's events to this URL (docs/notices.md)")
	f.StringVar(&o.key, "notify-key", "", "file with the secret that signs what is posted there (default: notify.key below --data, made if there is none)")
	f.StringVar(&o.mail, "notify-mail", "", "address that is written to about what needs somebody")
	f.StringSliceVar(&o.allow, "notify-allow", nil, "internal addresses (PREFIX,...) to which tenants may have their events posted")
	f.StringVar(&o.sendmail, "sendmail", "", "program that sends mail, such as /usr/sbin/sendmail; without it none is sent")
	f.StringVar(&o.from, "mail-from", "", "address of the sender of mail")
}

// notices reads them; the secret is kept below data.
func (o *notifyOptions) notices(data string) (n server.Notices, err error) {
	n = server.Notices{URL: o.url, Mail: o.mail, Sendmail: o.sendmail, From: o.from}
	if err := o.check(); err != nil {
		return n, badInput{err}
	}
	for _, text := range o.allow {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return n, badInput{fmt.Errorf("--notify-allow %q is no prefix: write such as 192.0.2.0/24", text)}
		}
		n.Allow = append(n.Allow, p.Masked())
	}
	if o.url != "" {
		n.Key, err = o.secret(data)
	}
	return n, err
}

func (o *notifyOptions) check() error {
	switch {
	case o.url == "" && o.key != "":
		return errors.New("--notify-key is for --notify-url: state both")
	case o.url != "" && vnet.CheckNotifyURL(o.url) != nil:
		return fmt.Errorf("--notify-url %q is not such as https://HOST/PATH", o.url)
	case o.mail != "" && vnet.CheckMail("mail", o.mail) != nil:
		return fmt.Errorf("--notify-mail %q is not an address such as root@example.org", o.mail)
	case o.sendmail != "" && vnet.CheckMail("mail", o.from) != nil:
		return fmt.Errorf("--mail-from %q is not an address such as sublet@example.org: --sendmail needs one", o.from)
	case o.sendmail == "" && o.from+o.mail != "":
		return errors.New("--mail-from and --notify-mail need --sendmail: state the program that sends mail")
	case o.sendmail != "" && !executable(o.sendmail):
		return fmt.Errorf("--sendmail %s is no program: write its whole path", o.sendmail)
	}
	return nil
}

// executable says whether a path is that of a program.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// secret reads the operator's secret, or makes one.
func (o *notifyOptions) secret(data string) ([]byte, error) {
	path := o.key
	if path == "" {
		path = filepath.Join(data, "notify.key")
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && o.key == "" {
		text = []byte(rand.Text() + "\n")
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return nil, badInput{fmt.Errorf("--notify-key: %w", err)}
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < 16 {
		return nil, badInput{fmt.Errorf("--notify-key %s: it has %d characters: a secret has 16 and more", path, len(secret))}
	}
	return []byte(secret), nil
}
