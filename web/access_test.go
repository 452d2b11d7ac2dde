package web

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// operable are the roles of what is operated, which needs a name, and of pictures.
var operable = []string{"button", "link", "textbox", "searchbox", "combobox", "image", "img", "DisclosureTriangle", "columnheader", "navigation"}

// TestSoakNames: in every view, what can be operated and what is drawn has a name
// in the browser's accessibility tree.
func TestSoakNames(t *testing.T) {
	tab, address := browse(t, newCrowd(40, 24, ""))
	for _, view := range views {
		visit(t, tab, address, view)
		tree, err := chromedp.Call(tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, n := range tree.Nodes {
			if n.Ignored || n.Role == nil || !slices.Contains(operable, text(n.Role)) {
				continue
			}
			seen++
			if text(n.Name) == "" && text(n.Role) != "columnheader" {
				t.Errorf("%s: a %s has no name", view, text(n.Role))
			}
		}
		if seen < 7 {
			t.Errorf("%s has only %d things with a role", view, seen)
		}
	}
}

func text(v *accessibility.Value) (s string) {
	if v != nil {
		_ = json.Unmarshal([]byte(v.Value), &s) // what is no text has none
	}
	return s
}

// TestSoakKeyboard: the views, the map and the lists are reached by the keyboard.
func TestSoakKeyboard(t *testing.T) {
	tab, address := browse(t, newCrowd(40, 24, ""))
	visit(t, tab, address, "networks")
	do(t, tab, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter)) // the first view
	until(t, tab, "location.hash === '#/map' && document.querySelector('canvas')")
	do(t, tab, chromedp.Focus(chromedp.CSS(".graph")))
	until(t, tab, "document.activeElement.className.includes('graph')")
	do(t, tab, chromedp.KeyEvent("+"), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent("0"), chromedp.KeyEvent(kb.Tab))
	until(t, tab, "document.activeElement.getAttribute('aria-label') === 'Nearer'")
	complains(t, tab)
}

// TestColoursCanBeRead: text has the contrast that WCAG 2.2 asks for (1.4.3: 4.5 to
// 1), lines of graphs that of 1.4.11 (3 to 1, but for what is idle), light and dark.
func TestColoursCanBeRead(t *testing.T) {
	sheet, err := os.ReadFile("static/style.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, theme := range strings.Split(string(sheet), "--text: ")[1:] {
		theme, _, _ = strings.Cut("--text: "+theme, "}")
		of := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(theme, -1) {
			of[m[1]] = m[2]
		}
		for _, p := range []struct {
			front, back string
			least       float64
		}{
			{"text", "panel", 4.5}, {"text", "back", 4.5}, {"accent", "panel", 4.5}, {"accent", "back", 4.5}, {"warn", "panel", 4.5}, {"warn", "back", 4.5},
			{"good", "panel", 4.5}, {"good", "back", 4.5}, {"broken", "panel", 4.5}, {"broken", "back", 4.5},
			{"low", "panel", 3}, {"middle", "panel", 3}, {"high", "panel", 3}, {"plan", "panel", 3},
		} {
			if got := contrast(of[p.front], of[p.back]); got < p.least {
				t.Errorf("%s on %s, %s on %s: %.1f, wanted %.1f", p.front, p.back, of[p.front], of[p.back], got, p.least)
			}
		}
	}
}

// contrast of two colours, as WCAG defines it.
func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(colour string) float64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32) // as the expression found it
	part := func(shift uint) float64 {
		c := float64(n>>shift&255) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}
