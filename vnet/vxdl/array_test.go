package vxdl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

func describe(r vnet.Request) string {
	var words []string
	for _, n := range r.All() {
		words = append(words, n.Name)
	}
	for _, l := range r.Links {
		words = append(words, fmt.Sprintf("%s:%s>%s", l.Name, l.Ends[0], l.Ends[1]))
	}
	return strings.Join(words, " ")
}

// What an array and the links that name it become; a and b stand outside.
func TestArrays(t *testing.T) {
	link := func(id, source, destination string) string {
		return "<vLink><id>" + id + "</id><source>" + source + "</source><destination>" + destination + "</destination></vLink>"
	}
	array := func(id string, size int, inside string) string {
		return fmt.Sprintf("<vArray><id>%s</id>%s<cardinality>%d</cardinality></vArray>", id, inside, size)
	}
	for _, c := range []struct{ name, body, want string }{
		{"outside", array("x", 2, "<vNode><id>n</id></vNode>") + link("l", "a", "x"), "a b x-0 x-1 l-0:a>x-0 l-1:a>x-1"},
		{"link first", link("l", "x", "a") + array("x", 2, "<vNode><id>n</id></vNode>"), "a b x-0 x-1 l-0:x-0>a l-1:x-1>a"},
		{"one member", array("x", 1, "<vNode><id>n</id></vNode>") + link("l", "x", "a"), "a b x-0 l-0:x-0>a"},
		{"one id for both", array("x", 2, "<vNode><id>x</id></vNode>") + link("l", "x", "a"), "a b x-0 x-1 l-0:x-0>a l-1:x-1>a"},
		{"single member", array("x", 2, "<vNode><id>n</id></vNode>") + link("l", "x-1", "a"), "a b x-0 x-1 l:x-1>a"},
		{"inside", array("x", 2, "<vNode><id>n</id></vNode><vNode><id>m</id></vNode>"+link("l", "n", "m")), "a b x-0-n x-1-n x-0-m x-1-m l-0:x-0-n>x-0-m l-1:x-1-n>x-1-m"},
		{"inside to outside", array("x", 2, "<vNode><id>n</id></vNode>"+link("l", "n", "a")), "a b x-0 x-1 l-0:x-0>a l-1:x-1>a"},
		{"one of several", array("x", 2, "<vNode><id>n</id></vNode><vRouter><id>m</id></vRouter>") + link("l", "m", "b"), "a b x-0-n x-1-n x-0-m x-1-m l-0:x-0-m>b l-1:x-1-m>b"},
		{"taken name", "<vNode><id>x-0</id></vNode>" + array("x", 1, "<vNode><id>n</id></vNode>"), "a b x-0 x-0-2"},
		{"link named as node", link("a", "a", "b"), "a b a-2:a>b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, err := Parse("f", []byte(wrap(c.body)), true)
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(r); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Notes do not multiply with members, nor labels get shared among them.
func TestMembersAreTheirOwn(t *testing.T) {
	r, notes, err := Parse("f", []byte(wrap(`<vArray><id>x</id><cardinality>9</cardinality>
<vNode><id>n</id><image>i</image><storage><simple>1</simple><unit>GB</unit></storage></vNode></vArray>`)), true)
	if err != nil || len(notes) != 2 {
		t.Fatalf("got %v, %v, want two notes", notes, err)
	}
	r.Nodes[2].Labels["vxdl:image"] = "other"
	if r.Nodes[3].Labels["vxdl:image"] != "i" {
		t.Error("two members share their labels")
	}
}

// Large documents take time in proportion to their size, not to its square.
func TestLargeDocuments(t *testing.T) {
	for name, text := range map[string]string{
		"white space":      wrap(strings.Repeat("<user>net</user>\n    ", 150_000)),
		"unknown children": wrap("<vNode><id>c</id>" + strings.Repeat("<q/>", 400_000) + "</vNode>"),
		"empty arrays":     wrap(empty(60_000)),
		"similar names":    wrap(similar(4900)),
		"comments":         wrap("<user>" + strings.Repeat("x<!---->", 400_000) + "</user>"),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, notes, err := Parse("f", []byte(text), false)
			took := time.Since(start)
			t.Logf("%v, %d notes, %v", took, len(notes), err)
			if took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// similar makes nodes whose ids differ only in what names may not hold.
func similar(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<vNode><id>%s</id></vNode>", strings.Repeat("é", i%20)+string(rune(0x4e00+i)))
	}
	return b.String()
}

// empty makes arrays that hold nothing.
func empty(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<vArray><id>x%d</id><cardinality>1</cardinality></vArray>", i)
	}
	return b.String()
}
