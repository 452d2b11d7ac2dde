package test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/gorilla/websocket"
)

// servedPage is a page of a lab.
type servedPage struct{ address, secret string }

func (l *lab) page(args ...string) servedPage {
	l.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, program, append([]string{"--run", l.run, "page"}, args...)...)
	out, err := c.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { cancel(); _ = c.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	address, secret, ok := strings.Cut(strings.TrimSpace(line), "/#")
	if err != nil || !ok {
		l.t.Fatalf("the page's address is %q: %v", line, err)
	}
	return servedPage{address, secret}
}

func (p servedPage) call(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.secret)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// browser is a tab of Chromium.
func browser(t *testing.T) context.Context {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("there is no chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// shows waits until a view has some words, and the page no complaint.
func (p servedPage) shows(t *testing.T, tab context.Context, view string, words ...string) {
	t.Helper()
	if err := chromedp.Do(tab, chromedp.Navigate("about:blank"), chromedp.Navigate(p.address+"/#"+p.secret+"/"+view)); err != nil {
		t.Fatal(err)
	}
	p.has(t, tab, words...)
}

// has waits until the page has some words, and no complaint.
func (p servedPage) has(t *testing.T, tab context.Context, words ...string) {
	t.Helper()
	eventually(t, 20*time.Second, func() error {
		text, err := chromedp.Run(tab, chromedp.OuterHTML("body", chromedp.NodeReady))
		if err == nil {
			err = holdsAll(text, append(words, `role="alert" hidden`, `class="live">live`)...)
		}
		if err == nil && strings.Contains(text, p.secret) {
			err = errors.New("the secret is shown")
		}
		return err
	})
}

// TestSoakPage: each view shows what is there, in a browser; a console answers; a
// request asked for in the page becomes a network; a page that only shows does
// nothing.
func TestSoakPage(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up("network: hello\nnodes: [{name: ping, host: h1}, {name: pong, host: h2}]\nlinks: [{name: ping-pong, ends: [ping, pong], min: 100Mbit}]\n")
	p := l.page()
	tab := browser(t)
	p.shows(t, tab, "map/root/hello", "<canvas", "root/hello", "running", "less than half")
	p.shows(t, tab, "networks", "root/hello", "running", "until released")
	p.shows(t, tab, "network/root/hello", "at least 100 Mbit/s", "10.0.0.", "u-over", "Capture 5 s", "Release", "running")
	p.shows(t, tab, "calendar", "100 Mbit/s of", "have nothing booked", "<rect")
	p.shows(t, tab, "events", "root/hello", "running")
	p.shows(t, tab, "console/root/hello/ping", "root@ping")
	p.shows(t, tab, "request", "What would come of it?")
	if err := chromedp.Do(tab, chromedp.Click(chromedp.CSS("#ask"))); err != nil {
		t.Fatal(err)
	}
	p.has(t, tab, "under another name", "100 Mbit/s of", "nodes more if", `class="whatif"`)
	if err := chromedp.Do(tab, chromedp.SetValue(chromedp.CSS("textarea"), "network: large\nnodes: [{name: a, host: h1}, {name: b, host: h2}]\nlinks: [{ends: [a, b], min: 5Gbit}]\n"), chromedp.Click(chromedp.CSS("#ask"))); err != nil {
		t.Fatal(err)
	}
	p.has(t, tab, "It would be refused", "It would be admitted with another minimum", "in place of", "Lease it", "this request", "with another minimum")
	if err := chromedp.Do(tab, chromedp.Click(chromedp.CSS(".offer [aria-label='Show offer 1 in the calendar']"))); err != nil {
		t.Fatal(err)
	}
	p.has(t, tab, "more if")
	if out := p.answers("root", "hello", "ping", "echo it-is-$((40+2))\n", "it-is-42"); !strings.Contains(out, "it-is-42") {
		t.Errorf("the console says %q", out)
	}
	if status, text := p.call(t, "GET", "/page/capture?tenant=root&network=hello&link=ping-pong&count=1&for=1s", ""); status != 200 || !strings.HasPrefix(text, "\x0a\x0d\x0d\x0a") {
		t.Errorf("a capture is %d %.80q", status, text)
	}
	_, request := p.call(t, "POST", "/page/request", "network: asked\nnodes: [{name: a}]\n")
	if status, text := p.call(t, "POST", "/v1/leases", `{"request":`+request+`}`); status != 201 {
		t.Errorf("a request of the page is answered %d %s", status, text)
	}
	l.must("wait", "asked")
	l.must("maintenance", "add", "h2", "--start", time.Now().Add(2*time.Hour).Format(time.RFC3339), "--for", "1h", "--note", "new fans")
	p.shows(t, tab, "calendar", `class="planned"`, "new fans")
	p.shows(t, tab, "networks", "maintenance of h2")
	l.servesPage(t)
	only := l.page("--read-only")
	if status, text := only.call(t, "DELETE", "/v1/leases/root/asked", ""); status != 403 {
		t.Errorf("a page that only shows ends a network: %d %s", status, text)
	}
	if out := only.answers("root", "hello", "ping", "", ""); !strings.Contains(out, "403") {
		t.Errorf("a page that only shows opens a console: %q", out)
	}
	if status, _ := (servedPage{address: p.address, secret: only.secret}).call(t, "GET", "/v1/leases", ""); status != 401 {
		t.Errorf("another page's secret gets %d", status)
	}
}

// servesPage looks at the page that the server itself has: by a token one sees what
// it may, and a console is for one that may write.
func (l *lab) servesPage(t *testing.T) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(l.run, "api.sock"))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	get := func(path, token string) string {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://sublet"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return fmt.Sprint(response.StatusCode, " ", string(text))
	}
	console := func(token string) string {
		dialer := websocket.Dialer{NetDialContext: dial, Subprotocols: []string{"sublet.page", "sublet.bearer." + token}}
		conn, response, err := dialer.DialContext(t.Context(), "ws://sublet/page/console?tenant=root&network=hello&node=ping", nil)
		if err != nil {
			return response.Status
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		_ = conn.WriteMessage(websocket.BinaryMessage, []byte("echo it-is-$((40+2))\n"))
		for said := ""; ; {
			_, data, err := conn.ReadMessage()
			if said += string(data); err != nil || strings.Contains(said, "it-is-42") {
				return said
			}
		}
	}
	read, write := strings.TrimSpace(l.must("token", "create", "--scope", "read", "--for", "1h")), strings.TrimSpace(l.must("token", "create", "--scope", "write"))
	for _, c := range []struct{ got, want string }{
		{get("/", ""), "200 <!doctype html>"}, {get("/js/main.js", ""), "200 import"},
		{get("/page/about", "slt_none"), "401 "}, {get("/page/about", read), `200 {"read_only":true}`}, {get("/page/about", write), `200 {"read_only":false}`},
		{get("/v1/leases", read), "200 ["}, {get("/page/capture?tenant=root&network=hello&link=ping-pong&count=1&for=1s", read), "403 "},
		{get("/page/capture?tenant=root&network=hello&link=ping-pong&count=1&for=1s", write), "200 \x0a\x0d\x0d\x0a"},
		{console(read), "403 "},
	} {
		if !strings.HasPrefix(strings.ToLower(c.got), strings.ToLower(c.want)) {
			t.Errorf("the server's page answers %.200q, wanted %q", c.got, c.want)
		}
	}
	if out := console(write); !strings.Contains(out, "it-is-42") {
		t.Errorf("the server's console says %q", out)
	}
}

// answers types into a node's console and returns what it says until it has said
// what is waited for, or ends.
func (p servedPage) answers(tenant, network, node, typed, until string) string {
	query := url.Values{"tenant": {tenant}, "network": {network}, "node": {node}}
	dialer := websocket.Dialer{Subprotocols: []string{"sublet.page", "sublet.bearer." + p.secret}}
	conn, response, err := dialer.Dial("ws"+strings.TrimPrefix(p.address, "http")+"/page/console?"+query.Encode(), nil)
	if err != nil {
		return response.Status
	}
	defer conn.Close()
	size, _ := json.Marshal(map[string]int{"Rows": 40, "Cols": 100})
	_ = conn.WriteMessage(websocket.TextMessage, size)
	_ = conn.WriteMessage(websocket.BinaryMessage, []byte(typed))
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	var said strings.Builder
	for !strings.Contains(said.String(), until) {
		_, data, err := conn.ReadMessage()
		if err != nil {
			return said.String() + " " + err.Error()
		}
		said.Write(data)
	}
	return said.String()
}

// holdsAll says which of some words a text lacks.
func holdsAll(text string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Errorf("%q is not in\n%s", word, text)
		}
	}
	return nil
}
