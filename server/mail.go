package server

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"os/exec"
	"strings"
	"time"
	"unicode"

	"sublet/report"
	"sublet/vnet"
)

// mailed says whether an event is one to write about: what is wrong, what is right
// again, what is to come.
func mailed(h vnet.Happening) bool {
	switch h.Kind {
	case string(report.KindLease):
		return h.State == string(vnet.Failed) || h.State == string(vnet.Degraded) || h.State == string(vnet.Ended)
	case string(kindPromise), string(kindEnd), string(kindMaintenance), string(kindWaiting), string(report.KindHost), string(report.KindLink):
		return true
	}
	return h.Kind == "move" && h.State == string(vnet.MovePrepares)
}

// mailEvent hands a message to sendmail, without a shell. The address has been
// checked, and is no option.
func (n *notifier) mailEvent(ctx context.Context, to vnet.Notify, h vnet.Happening) error {
	if err := vnet.CheckMail("mail", to.Mail); err != nil {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	command := exec.CommandContext(ctx, n.config.Sendmail, "-i", "-f", n.config.From, to.Mail)
	command.Stdin = bytes.NewReader(message(n.config.From, to.Mail, h))
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	command.Dir = "/"
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		return fmt.Errorf("sendmail did not take it: %w", err)
	}
	return nil
}

// message is the text of a mail. No header has a line of another's making: addresses
// match a pattern without white space, and the subject is one encoded line.
func message(from, to string, h vnet.Happening) []byte {
	var b bytes.Buffer
	about := h.What
	if h.Kind == string(kindPromise) {
		about = h.Lease.String() + " " + h.What
	}
	fmt.Fprintf(&b, "From: %s\nTo: %s\nSubject: %s\n", from, to, mime.QEncoding.Encode("utf-8", printable("[sublet] "+h.Kind+" "+about+": "+h.State)))
	fmt.Fprintf(&b, "Date: %s\n", h.Time.UTC().Format(time.RFC1123Z))
	b.WriteString("Auto-Submitted: auto-generated\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n")
	body := quotedprintable.NewWriter(&b)
	for _, line := range [][2]string{{"what", h.Kind + " " + about}, {"state", h.State}, {"by", h.By}, {"why", h.Why}, {"time", h.Time.UTC().Format(time.RFC3339)}} {
		if line[1] != "" {
			fmt.Fprintf(body, "%s: %s\n", line[0], printable(line[1]))
		}
	}
	fmt.Fprint(body, "\nsublet events says what else happened.\n")
	_ = body.Close() // to memory
	return bytes.ReplaceAll(b.Bytes(), []byte("\r\n"), []byte("\n"))
}

// printable is a text as one line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
