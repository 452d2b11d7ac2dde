package file

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// Small files that could grow without end are refused at once, in a few lines.
func TestBombs(t *testing.T) {
	var aliases bytes.Buffer
	aliases.WriteString("network: n\nlabels:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&aliases, "  a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	for name, text := range map[string]string{
		"aliases":           aliases.String(),
		"brackets":          strings.Repeat("[", MaxSize),
		"fewer brackets":    strings.Repeat("[", 100_000),
		"braces":            strings.Repeat("{a: ", 300_000),
		"dashes":            strings.Repeat("- ", 500_000),
		"indents":           deep(2000),
		"size":              strings.Repeat("x", MaxSize+1),
		"commas":            "nodes: [" + strings.Repeat(",", MaxSize/2),
		"long word":         "network: " + strings.Repeat("x", MaxSize/2),
		"many nodes":        "network: n\nnodes: [" + strings.Repeat("{},", 300_000) + "]",
		"quotes":            strings.Repeat(`"`, MaxSize),
		"question marks":    strings.Repeat("? ", 500_000),
		"comments":          strings.Repeat("#\n", MaxSize/2),
		"blanks":            strings.Repeat("\n", MaxSize/2),
		"anchors":           strings.Repeat("&a ", 100_000),
		"tags":              strings.Repeat("!a ", 100_000),
		"document starts":   strings.Repeat("---\n", 500_000),
		"folded":            "network: >\n" + strings.Repeat(" x\n", 300_000),
		"key after key":     strings.Repeat("a: 1\n", 200_000),
		"colons":            strings.Repeat(":", MaxSize),
		"multi-line string": `network: "` + strings.Repeat("x\n", 200_000) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := ParseRequest("f", []byte(text))
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			t.Logf("%v, %d MiB allocated: %v", took, (after.TotalAlloc-before.TotalAlloc)>>20, err)
			if err == nil || len(err.Error()) > 2000 || strings.Count(err.Error(), "\n") >= vnet.MostProblems {
				t.Errorf("got %v", err)
			}
			// A hundred times what it takes, and far less than a bomb's.
			if took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// deep nests block mappings.
func deep(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i))
		b.WriteString("a:\n")
	}
	return b.String()
}

// The largest request fits into a file and comes back.
func TestLargest(t *testing.T) {
	r := vnet.Request{Network: "n"}
	for i := range vnet.MaxNodes {
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: fmt.Sprintf("node-%d", i), CPU: 500, Memory: 256 * vnet.MiB, Site: "lyon"})
	}
	for i := range vnet.MaxLinks {
		r.Links = append(r.Links, vnet.VirtualLink{
			Ends:      [2]string{r.Nodes[i%vnet.MaxNodes].Name, r.Nodes[(i+1)%vnet.MaxNodes].Name},
			Bandwidth: [2]vnet.Bandwidth{{Min: 100 * vnet.Mbit, Max: 500 * vnet.Mbit}, {Max: 50 * vnet.Mbit}}, Latency: 10 * time.Millisecond,
		})
	}
	r.Fill()
	text, err := FormatRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseRequest("f", text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, r) {
		t.Error("it comes back changed")
	}
}
