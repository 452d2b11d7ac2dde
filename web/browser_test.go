package web

import (
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", "", "folder for pictures of each view, light and dark")

// browse opens a tab of Chromium for the page of a crowd.
func browse(t testing.TB, c *crowd) (context.Context, string) {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("there is no chromium")
	}
	s := httptest.NewServer(Handler{Server: c, Secret: "s3cret"}.Routes())
	t.Cleanup(s.Close)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 800))
	tab, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	tab, cancel = chromedp.NewContext(tab)
	t.Cleanup(cancel)
	do(t, tab, chromedp.Navigate("about:blank"))
	return tab, s.URL
}

func do(t testing.TB, tab context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(tab, steps...); err != nil {
		t.Fatal(err)
	}
}

func value[T any](t testing.TB, tab context.Context, script string, options ...chromedp.EvaluateOption) T {
	t.Helper()
	v, err := chromedp.Run(tab, chromedp.Evaluate[T](script, options...))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}

// until waits for what a script finds to be so.
func until(t testing.TB, tab context.Context, script string) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if value[bool](t, tab, "!!("+script+")") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it does not come to %s; the page has\n%.3000s", script, value[string](t, tab, "document.body.innerText"))
		}
	}
}

const ready = `document.documentElement.dataset.ready === 'true'`

// visit opens a view in a page that is loaded anew.
func visit(t testing.TB, tab context.Context, address, view string) {
	t.Helper()
	do(t, tab, chromedp.Navigate("about:blank"), chromedp.Navigate(address+"/#s3cret/"+view))
	until(t, tab, ready)
	complains(t, tab)
}

// complains fails if the page says that something is wrong.
func complains(t testing.TB, tab context.Context) {
	t.Helper()
	if said := value[string](t, tab, "document.getElementById('alert').textContent"); said != "" {
		t.Errorf("%s complains: %s", value[string](t, tab, "location.hash"), said)
	}
}

// TestSoakPictures shows every view in light and in dark; with -pictures it keeps
// pictures of them.
func TestSoakPictures(t *testing.T) {
	c := newCrowd(40, 24, "asked for by the course")
	c.every = 200 * time.Millisecond
	tab, address := browse(t, c)
	for _, theme := range []string{"light", "dark"} {
		visit(t, tab, address, "networks")
		value[any](t, tab, "localStorage.setItem('sublet.theme', '"+theme+"')")
		for _, view := range []string{"map", "map/tenant03/net0003", "networks", "network/tenant03/net0003", "calendar", "events", "request"} {
			visit(t, tab, address, view)
			if got := value[string](t, tab, "document.documentElement.dataset.theme"); got != theme {
				t.Errorf("%s is %s, wanted %s", view, got, theme)
			}
			picture(t, tab, strings.ReplaceAll(view, "/", "-")+"-"+theme)
		}
	}
}

func picture(t testing.TB, tab context.Context, name string) {
	t.Helper()
	if *pictures == "" {
		return
	}
	time.Sleep(3 * time.Second) // for rates to come
	png, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}
