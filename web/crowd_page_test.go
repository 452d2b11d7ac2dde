package web

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// mostElements bounds what a view makes of a thousand leases: rows that nobody has
// asked for are not made.
const mostElements = 6000

// mostOwn bounds the processor time that a view needs to come, in milliseconds: ten
// times what BenchmarkPaint finds.
const mostOwn = 3000

// TestSoakCrowd: with 200 hosts and 1,000 leases each view comes, makes a bounded
// number of elements, and takes markup of tenants for text.
func TestSoakCrowd(t *testing.T) {
	c := newCrowd(200, 1000, markup)
	tab, address := browse(t, c)
	for _, view := range []struct{ name, shows string }{
		{"map", "document.querySelector('canvas') && document.querySelectorAll('aside li').length === 100"},
		{"networks", "document.querySelectorAll('tbody tr').length === 100"},
		{"network/tenant03/net0003", "document.querySelector('.proof .broken')"},
		{"calendar", "document.querySelectorAll('.calendar .row').length > 400 && document.querySelectorAll('rect.planned').length === 3"},
		{"events", "document.querySelectorAll('tbody tr').length === 100"},
		{"request", "document.querySelectorAll('.help button').length > 5"},
	} {
		if c := costOf(t, tab, address, view.name); c.own > mostOwn {
			t.Errorf("%s takes %.0f ms of processor time to come", view.name, c.own)
		}
		until(t, tab, view.shows)
		if n := value[int](t, tab, "document.querySelectorAll('*').length"); n > mostElements {
			t.Errorf("%s has %d elements", view.name, n)
		}
		if value[bool](t, tab, "document.title !== 'Sublet' || document.querySelector('img') !== null") {
			t.Errorf("%s takes a tenant's words for markup", view.name)
		}
		complains(t, tab)
	}
	visit(t, tab, address, "networks")
	click(t, tab, "#view button") // more of them
	until(t, tab, "document.querySelectorAll('tbody tr').length === 200")
	do(t, tab, chromedp.SendKeys(chromedp.CSS("#view input"), "net0777"))
	until(t, tab, "document.querySelectorAll('tbody tr').length === 1 && document.querySelector('tbody a').textContent === 'tenant17/net0777'")
}

func click(t testing.TB, tab context.Context, where string) {
	t.Helper()
	for try := 0; ; try++ {
		err := chromedp.Do(tab, chromedp.Click(chromedp.CSS(where), chromedp.NodeVisible))
		if err == nil {
			return
		}
		// chromedp loses a node that is painted anew between its steps.
		if try == 3 || !strings.Contains(err.Error(), "No node with given id") {
			t.Fatalf("click %s: %v", where, err)
		}
	}
}

// rush counts what the page does from now on: tasks that take long, and paintings.
const rush = `window.rush = {long: [], frames: 0};
new PerformanceObserver((list) => list.getEntries().forEach((e) => window.rush.long.push(e.duration))).observe({type: 'longtask'});
const frame = () => { window.rush.frames++; requestAnimationFrame(frame); }; frame();`

// TestSoakRush: sixty updates a second of a thousand leases do not freeze the page.
// Views answer to clicks meanwhile; the list of all leases is read now and then only.
// The bounds are those of a machine that has much else to do.
func TestSoakRush(t *testing.T) {
	c := newCrowd(200, 1000, markup)
	c.every = time.Second / 60
	tab, address := browse(t, c)
	visit(t, tab, address, "map")
	click(t, tab, "aside .tools button") // all networks
	value[any](t, tab, rush)
	told, read := c.told.Load(), c.readAll.Load()
	for _, view := range []string{"networks", "calendar", "map", "events", "request", "networks", "map"} {
		click(t, tab, `nav a[href="#/`+view+`"]`)
		until(t, tab, `document.querySelector('nav a[aria-current]').hash === '#/`+view+`' && document.querySelector('.view').childElementCount > 0`)
		time.Sleep(time.Second)
		complains(t, tab)
	}
	if n := c.told.Load() - told; n < 100 {
		t.Fatalf("only %d updates were told: nothing is shown by this", n)
	}
	if n := c.readAll.Load() - read; n > 20 {
		t.Errorf("all leases were read %d times", n)
	}
	if n := value[int](t, tab, "window.rush.frames"); n < 20 {
		t.Errorf("the page was painted %d times in seven seconds", n)
	}
	if worst := value[float64](t, tab, "Math.max(0, ...window.rush.long)"); worst > 2000 {
		t.Errorf("a task took %.0f ms", worst)
	}
	t.Logf("%d updates; long tasks: %s", c.told.Load()-told, value[string](t, tab, "window.rush.long.map(Math.round).join(' ')"))
}

// TestSoakMapColours: colours say what is booked, or what is carried now; networks
// are over the substrate that are chosen, or all.
func TestSoakMapColours(t *testing.T) {
	c := newCrowd(40, 24, "")
	c.every = 100 * time.Millisecond
	tab, address := browse(t, c)
	visit(t, tab, address, "map/tenant03/net0003")
	until(t, tab, `document.querySelector('aside [aria-pressed=true]')?.dataset.key === 'tenant03/net0003'`)
	// By script: chromedp loses a node that is painted anew between its steps.
	value[any](t, tab, `{const s = document.querySelector('aside select'); s.value = 'carried'; s.dispatchEvent(new Event('change'));}`)
	click(t, tab, "summary")
	until(t, tab, `[...document.querySelectorAll('details tbody tr')].some((r) => /Mbit/.test(r.cells[4].textContent))`)
	click(t, tab, "aside .tools button")
	until(t, tab, `document.querySelector('aside .tools button').getAttribute('aria-pressed') === 'true' && !document.querySelector('aside li [aria-pressed=true]')`)
	complains(t, tab)
}

// TestSoakWhatIf: a request that is refused, and its offers, are in the calendar; an
// offer whose place is asked for shows what it would have of links and hosts.
func TestSoakWhatIf(t *testing.T) {
	c := newCrowd(40, 24, markup)
	tab, address := browse(t, c)
	visit(t, tab, address, "request")
	click(t, tab, "#ask")
	until(t, tab, "document.querySelectorAll('.calendar .asked').length === 3 && document.querySelectorAll('.calendar .planned').length > 0")
	if n := value[int](t, tab, "document.querySelectorAll('.calendar .row:not(.asked) .whatif').length"); n != 0 {
		t.Errorf("%d rows show what nobody has asked for", n)
	}
	c.admits.Store(true)
	click(t, tab, `.offer button[aria-label^="Show offer 2"]`)
	until(t, tab, "document.querySelectorAll('.calendar .row:not(.asked):not(.scale) .whatif').length > 4")
	picture(t, tab, "what-if")
	complains(t, tab)
}

// TestSoakEditor: what is wrong is told beside its line, goes when it is mended, and
// what may stand at the cursor is chosen by the keyboard alone.
func TestSoakEditor(t *testing.T) {
	tab, address := browse(t, newCrowd(1, 1, ""))
	visit(t, tab, address, "request")
	write := func(text string) {
		t.Helper()
		do(t, tab, chromedp.Focus(chromedp.CSS("#request")))
		value[any](t, tab, "document.activeElement.select(); document.execCommand('insertText', false, "+strconv.Quote(text)+")")
	}
	write("network: n\nnodes:\n  - {name: a, cppu: 1}")
	until(t, tab, "document.querySelector('.gutter .wrong')?.textContent === '3' && document.querySelector('.problems').textContent.includes('line 3, column 15')")
	if !value[bool](t, tab, "document.getElementById('request').getAttribute('aria-invalid') === 'true'") {
		t.Error("the field is not said to be wrong")
	}
	picture(t, tab, "editor")
	click(t, tab, ".problems button")
	until(t, tab, "getSelection().toString() === 'cppu' || document.getElementById('request').value.slice(document.getElementById('request').selectionStart, document.getElementById('request').selectionEnd) === 'cppu'")
	do(t, tab, chromedp.KeyEvent("exclu"))
	until(t, tab, "document.querySelector('.help button')?.textContent === 'exclusive'")
	do(t, tab, chromedp.KeyEvent(" ", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	until(t, tab, "document.activeElement.textContent === 'exclusive'")
	do(t, tab, chromedp.KeyEvent(kb.Enter))
	until(t, tab, "document.getElementById('request').value.includes('{name: a, exclusive: 1}') && document.activeElement.id === 'request'")
	write("network: n\nnodes:\n- {name: a}\n")
	until(t, tab, "!document.querySelector('.gutter .wrong') && document.getElementById('request').getAttribute('aria-invalid') === 'false'")
	for _, c := range []struct{ text, offers string }{
		{"nodes:\n  - ", "name"}, {"links:\n  - {ends: [a, b], lat", "latency"}, {"links:\n  - name: x\n    rev", "reverse"},
		{"routers:\n- name: r\n  protocol: is", "isis"}, {"colocate: ", "forbidden"}, {"stages:\n  - add:\n      links:\n        - ", "ends"}, {"nodes: [{name: a}, {", "name"},
	} {
		found := value[string](t, tab, "(async () => { const s = await import('/js/schema.js'); const text = "+strconv.Quote(c.text)+"; return s.offered(await s.schema(), s.placeOf(text, text.length)).list.map((o) => o.name).join(); })()", chromedp.EvalAwaitPromise)
		if !slices.Contains(strings.Split(found, ","), c.offers) {
			t.Errorf("after %q: %s, wanted %s among them", c.text, found, c.offers)
		}
	}
}
