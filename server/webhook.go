package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"sublet/vnet"
)

// Headers of what is posted.
const (
	signatureHeader = "Sublet-Signature"
	eventHeader     = "Sublet-Event"
)

// signature is what the receiver compares: HMAC-SHA256 (RFC 2104) of the body.
func signature(secret string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(body)
	return "sha256=" + hex.EncodeToString(h.Sum(nil))
}

// postEvent posts an event. What is answered is not read; what is said of a failure
// tells a tenant no more than whether their own server took it.
func (n *notifier) postEvent(ctx context.Context, to vnet.Notify, free bool, h vnet.Happening) error {
	body, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("%w: %v", errFinal, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: the address cannot be used", errFinal)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "sublet")
	request.Header.Set(eventHeader, h.Kind)
	request.Header.Set(signatureHeader, signature(to.Secret, body))
	client := n.client(free)
	answer, err := client.Do(request)
	switch {
	case errors.Is(err, errInternal):
		return fmt.Errorf("%w: %w", errFinal, errInternal)
	case err != nil:
		return errors.New("no answer")
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 4<<10) // so that a polite server sees its answer taken
	return taken(answer.StatusCode)
}

// taken says what a status means: who refuses a notice is not asked again, nor is
// who wants it to go elsewhere.
func taken(status int) error {
	err := fmt.Errorf("it answered with status %d", status)
	switch {
	case status >= 200 && status < 300:
		return nil
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return err
	}
	return fmt.Errorf("%w: %w", errFinal, err)
}

// client makes requests by itself: through no proxy, on no connection of another's,
// following no redirect, and unless free only to addresses that are not internal.
func (n *notifier) client(free bool) *http.Client {
	dialer := &net.Dialer{Timeout: noticeTimeout}
	if !free {
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return n.reachable(address) }
	}
	return &http.Client{
		Timeout: noticeTimeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true,
			TLSHandshakeTimeout: noticeTimeout, MaxResponseHeaderBytes: 16 << 10, ResponseHeaderTimeout: noticeTimeout,
			ExpectContinueTimeout: time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var errInternal = errors.New("the address is internal, and the operator does not allow it")

// reachable refuses an address, as a name was resolved to, that tenants' requests
// must not reach: the server's own, the substrate's, and those of no global use.
func (n *notifier) reachable(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return errInternal
	}
	ip := at.Addr().WithZone("").Unmap()
	if slices.ContainsFunc(n.config.Allow, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	n.mu.Lock()
	internal := n.internal[ip]
	n.mu.Unlock()
	if internal || !global(ip) || ownAddress(ip) {
		return errInternal
	}
	return nil
}

// notGlobal are the blocks of the registries of special-purpose addresses (RFC 6890)
// that are not globally reachable, and those that lead on to IPv4 addresses.
var notGlobal = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

func global(ip netip.Addr) bool {
	return !slices.ContainsFunc(notGlobal, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// ownAddress says whether an address is this machine's. If that cannot be read, it is
// taken for one.
func ownAddress(ip netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(list, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == ip
	})
}
