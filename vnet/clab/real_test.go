package clab

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sublet/vnet"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/real/*.want anew")

// besideReal are files that the topologies of testdata/real name.
func besideReal(source string) ([]vnet.File, error) {
	switch {
	case strings.HasPrefix(source, "/var/run"):
		return nil, errors.New("it is no file: " + source)
	case source == "none.env":
		return nil, os.ErrNotExist
	case strings.HasSuffix(source, ".env"):
		return []vnet.File{{Text: "# of " + source + "\nexport FROM=" + source + "\nLEVEL=info\nQUOTED=\"a b\"\n"}}, nil
	case strings.HasSuffix(source, "/"):
		return []vnet.File{{Path: "one.json", Text: "{}"}, {Path: "in/two", Text: "2", Mode: "0755"}}, nil
	}
	return []vnet.File{{Text: "text of " + source}}, nil
}

var stated = regexp.MustCompile(`ACCESS (\S+)=(\S+)`)

// Topologies in the shapes that containerlab's own examples have: what each becomes,
// and what is told of it, line by line.
func TestRealTopologies(t *testing.T) {
	files, err := filepath.Glob("testdata/real/*.clab.yml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			opt := Options{Files: besideReal, Access: make(map[string]Exit)}
			for _, m := range stated.FindAllStringSubmatch(string(text), -1) {
				opt.Access[m[1]] = Exit{m[2], 50 * vnet.Mbit}
			}
			r, notes, err := Parse(name, text, opt)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(name, ".clab.yml") + ".want"
			got := told(r, notes)
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || string(want) != got {
				t.Errorf("%v, got\n%s", err, got)
			}
		})
	}
}

// told is what a topology became, as text.
func told(r vnet.Request, notes []vnet.Note) string {
	var b strings.Builder
	for _, n := range r.All() {
		fmt.Fprintf(&b, "%s: protocol %q, image %q, env %v, run %d\n", n.Name, n.Protocol, n.Image, n.Env, len(n.Run))
		for _, f := range n.Files {
			fmt.Fprintf(&b, "  %s %s %.60q\n", f.Path, f.Mode, f.Text)
		}
	}
	for _, s := range r.Switches {
		fmt.Fprintf(&b, "switch %s: access %q\n", s.Name, s.Access)
	}
	for _, l := range r.Links {
		fmt.Fprintf(&b, "link %v %q %v %v\n", l.Ends, l.Interfaces, l.Addresses, l.Bandwidth[0].Min)
	}
	for _, n := range notes {
		word := "told"
		if n.Lost {
			word = "lost"
		}
		fmt.Fprintf(&b, "%s: %s\n", word, n)
	}
	return b.String()
}

// Values that are set hold before those that the topology states.
func TestVariablesAreFilledIn(t *testing.T) {
	text := []byte("name: x\ntopology: {nodes: {a: {kind: linux, image: \"${R:-docker.io}/t:${TAG:=1}\", env: {A: \"${B}\"}}}}\n")
	r, notes, err := Parse("f", text, Options{Set: map[string]string{"TAG": "2"}})
	if err != nil || r.Nodes[0].Image != "docker.io/t:2" || r.Nodes[0].Env["A"] != "${B}" {
		t.Errorf("%+v, %v", r.Nodes, err)
	}
	if len(notes) != 1 || notes[0].Lost || !strings.Contains(notes[0].Text, "--set B=VALUE") {
		t.Error(notes)
	}
}

// An exit for what the topology does not have is refused.
func TestAccessOfNothing(t *testing.T) {
	_, _, err := Parse("f", []byte("name: x\ntopology: {nodes: {a: {}}}\n"), Options{Access: map[string]Exit{"eth7": {Name: "campus", Rate: vnet.Mbit}}})
	if err == nil || !strings.Contains(err.Error(), "--access eth7: no link leads to") {
		t.Error(err)
	}
}
