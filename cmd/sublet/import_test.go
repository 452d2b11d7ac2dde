package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
	"sublet/vnet/file"
)

const smallLab = "name: small\ntopology:\n  nodes: {a: {kind: linux}, b: {kind: linux}, s: {kind: bridge}}\n  links: [{endpoints: [\"a:eth0\", \"s:p1\"]}, {endpoints: [\"b:eth0\", \"s:p2\"]}]\n"

func TestImport(t *testing.T) {
	for _, c := range []struct {
		name, text, args string
		code             int
		out, errs        string // are in what is printed; "": nothing is
	}{
		{name: "all of it", text: smallLab, code: exitDone, out: "network: small\n"},
		{name: "some of it", text: strings.Replace(smallLab, "a: {", "a: {dns: [x], ", 1), code: exitFailed, errs: "node a: dns is left out"},
		{name: "the rest", text: strings.Replace(smallLab, "a: {", "a: {dns: [x], ", 1), args: "--lossy", code: exitDone, out: "network: small\n", errs: "lost: 3:15: node a: dns"},
		{name: "an image", text: strings.Replace(smallLab, "a: {", "a: {image: x, ", 1), code: exitDone, out: "image: x"},
		{name: "without images", text: strings.Replace(smallLab, "a: {", "a: {image: x, ", 1), args: "--no-images", code: exitDone, out: "- {name: a}", errs: "node a: image x is left out: it has the files of its host"},
		{name: "VXDL", text: "<a/>", code: exitInput, errs: "is no VXDL root"},
		{name: "GraphML", text: smallGraph, code: exitDone, out: "rate: 155Mbit", errs: "node 1: \"Gen\u00e8ve\" is Geneve"},
		{name: "GraphML in small", text: smallGraph, args: "--scale 0.1", code: exitDone, out: "rate: 15500kbit", errs: "is Geneve"},
		{name: "GraphML with a loop", text: strings.Replace(smallGraph, `target="1"`, `target="0"`, 1), code: exitFailed, errs: "edge 0-0: a link needs two nodes"},
		{name: "RSpec", text: smallSpec, code: exitDone, out: "rate: 100Mbit", errs: "node web.1: is named web-1"},
		{name: "RSpec with an image", text: strings.Replace(smallSpec, `"><int`, `"><sliver_type name="default-vm"><disk_image name="x"/></sliver_type><int`, 1), code: exitFailed, errs: "lost: 1:32: node web-1: disk_image is left out"},
		{name: "no scale", text: smallGraph, args: "--scale 0", code: exitInput, errs: "--scale 0: state a number above 0"},
		{name: "a request", text: "network: x\nnodes: [{name: a}]\n", code: exitInput, errs: "no topology of containerlab"},
		{name: "a program of Mininet", text: "from mininet.topo import Topo\nclass A(Topo):\n  pass\n", code: exitInput, errs: "tools/mininet/export.py"},
		{name: "a file of MiniEdit", text: `{"application": {"startCLI": "1"}, "controllers": [], "hosts": []}`, code: exitInput, errs: "MiniEdit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := sublet(t, c.text, append([]string{"import", "-"}, strings.Fields(c.args)...)...)
			if code != c.code || !strings.Contains(out, c.out) || c.out == "" && out != "" || !strings.Contains(errs, c.errs) || c.errs == "" && errs != "" {
				t.Errorf("exit code %d\n%s\n%s", code, out, errs)
			}
		})
	}
}

const smallGraph = `<graphml><key id="l" for="edge" attr.name="LinkLabel"/><key id="b" for="node" attr.name="label"/><key id="n" for="graph" attr.name="Network"/><graph><data key="n">Small</data>` +
	`<node id="0"/><node id="1"><data key="b">Genève</data></node><edge source="0" target="1"><data key="l">155 Mbps</data></edge></graph></graphml>`

const smallSpec = `<rspec><node client_id="web.1"><interface client_id="a"/></node><node client_id="db"><interface client_id="b"/></node>` +
	`<link client_id="l"><interface_ref client_id="a"/><interface_ref client_id="b"/><property capacity="100000"/></link></rspec>`

// An RSpec is a substrate too.
func TestSubstrateOfRSpec(t *testing.T) {
	code, out, errs := sublet(t, smallSpec, "create", "substrate", "-")
	if code != exitDone || !strings.Contains(out, "web-1") || !strings.Contains(out, "100Mbit") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// Binds of a topology are read beside it.
func TestImportOfBinds(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("a/daemons", "ospfd=yes\n", 0o644)
	put("a/start", "#!/bin/sh\n", 0o755)
	put("one.conf", "one\n", 0o644)
	lab := put("x.clab.yml", strings.Replace(smallLab, "a: {", `a: {image: x, binds: ["__clabNodeName__:/etc/frr", "one.conf:/one:ro"], `, 1), 0o644)
	code, out, errs := sublet(t, "", "import", lab)
	for _, want := range []string{"path: /etc/frr/daemons, text: \"ospfd=yes\\n\"", "path: /etc/frr/start, text: \"#!/bin/sh\\n\", mode: \"0755\"", "path: /one, text: \"one\\n\""} {
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %s:\n%s%s", code, want, out, errs)
		}
	}
	if code, out, errs := sublet(t, "", "import", "--no-images", lab); code != exitDone || !strings.Contains(out, "path: /etc/frr/daemons") || strings.Contains(out, "image") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	for args, want := range map[string]string{"--access eth0=x": "write an exit and a rate, such as eth0=campus:50Mbit", "--access eth0=x:1Mbit": "no link leads to an interface eth0"} {
		if code, _, errs := sublet(t, "", append([]string{"import", lab}, strings.Fields(args)...)...); code != exitInput || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %s", args, code, errs)
		}
	}
	for i := range vnet.MaxFiles + 1 {
		put(fmt.Sprintf("b/%d", i), "x", 0o644)
	}
	lab = put("y.clab.yml", strings.Replace(smallLab, "a: {", `a: {image: x, binds: ["b:/b", "none:/c", "/etc/hostname:/d", "../x:/e"], `, 1), 0o644)
	if code, _, errs := sublet(t, "", "import", lab); code != exitFailed || !strings.Contains(errs, `"b:/b" is left out: it has more than 64 files`) || !strings.Contains(errs, "no such file") || strings.Count(errs, "leads out of the directory") != 2 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A file of another program is asked for as it is where nothing of it is lost.
func TestUpOfAnotherProgramsFile(t *testing.T) {
	for _, c := range []struct {
		name, text string
		code       int
		said, errs string
	}{
		{"all of it", smallLab, exitDone, "small", ""},
		{"GraphML", smallGraph, exitDone, "Small", "note: "},
		{"some of it", strings.Replace(smallLab, "a: {", "a: {binds: [x], ", 1), exitFailed, "", "sublet import --lossy -w request.yaml -"},
		{"a wrong one", strings.Replace(smallLab, "a:eth0", "c:eth0", 1), exitInput, "", "there is no node c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, said, errs := sublet(t, c.text, "up", "--dry-run", "--substrate", "demo", "-")
			if code != c.code || !strings.Contains(said, c.said) || !strings.Contains(errs, c.errs) {
				t.Errorf("exit code %d: %s%s", code, said, errs)
			}
		})
	}
}

// What is imported fits into the demo lab.
func TestImportedNetworkIsAdmitted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "request.yaml")
	if code, _, errs := sublet(t, smallLab, "import", "-", "-w", out); code != exitDone {
		t.Fatal(errs)
	}
	if code, said, errs := sublet(t, "", "up", "--dry-run", "--substrate", "demo", out); code != exitDone || !strings.Contains(said, "small") {
		t.Errorf("exit code %d: %s%s", code, said, errs)
	}
}

// Each language writes each example; as YAML it is the request itself.
func TestGetWritesExamples(t *testing.T) {
	examples, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatal("no examples", err)
	}
	for _, name := range examples {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		request, err := file.ParseRequest(name, text)
		if err != nil {
			t.Fatal(err)
		}
		for language, format := range languages {
			t.Run(filepath.Base(name)+" "+language, func(t *testing.T) {
				written, _, err := format(vnet.Lease{Request: request, Stage: -1}, new(translation))
				if err != nil || !strings.Contains(string(written), string(request.Network)) {
					t.Fatalf("%v\n%s", err, written)
				}
				again, err := written, error(nil)
				if language == "yaml" {
					again, err = reformat(name, written)
				}
				if err != nil || string(again) != string(written) {
					t.Errorf("%v\n%s\nis not\n%s", err, again, written)
				}
			})
		}
	}
}

func reformat(name string, text []byte) ([]byte, error) {
	request, err := file.ParseRequest(name, text)
	if err != nil {
		return nil, err
	}
	return file.FormatRequest(request)
}

func TestAgainIsForWhoeverAsks(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	past := again(vnet.Request{Tenant: "alice", Start: now, Before: now.Add(time.Hour), For: time.Hour}, now)
	if past.Tenant != "" || !past.Start.IsZero() || !past.Before.IsZero() || past.For != time.Hour {
		t.Errorf("%+v", past)
	}
	if future := again(vnet.Request{Start: now.Add(time.Minute)}, now); !future.Start.Equal(now.Add(time.Minute)) {
		t.Errorf("%+v", future)
	}
}

// Files of nodes that a topology of containerlab binds come back when it is imported, and
// nothing leads out of the directory where they are written.
func TestFilesBesideATopology(t *testing.T) {
	dir := t.TempDir()
	l := vnet.Lease{Request: vnet.Request{Network: "n", Topology: vnet.Topology{Nodes: []vnet.VirtualNode{
		{Name: "a", Setup: vnet.Setup{Image: "x", Files: []vnet.File{{Path: "/etc/a", Text: "text\n", Mode: "0600"}, {Path: "/start", Text: "#!/bin/sh\n", Mode: "0755"}}}}, {Name: "b"},
	}}}}
	l.Request.Fill()
	to := translation{out: filepath.Join(dir, "n.clab.yml")}
	text, notes, err := languages["clab"](l, &to)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	if err := errors.Join(to.writeFiles(), write(to.out, text)); err != nil {
		t.Fatal(err)
	}
	code, out, errs := sublet(t, "", "import", to.out)
	for _, want := range []string{`path: /etc/a, text: "text\n", mode: "0600"`, `path: /start, text: "#!/bin/sh\n", mode: "0755"`} {
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %s:\n%s%s", code, want, out, errs)
		}
	}
	elsewhere := t.TempDir()
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "n.files")), os.Symlink(elsewhere, filepath.Join(dir, "n.files"))); err != nil {
		t.Fatal(err)
	}
	if err := to.writeFiles(); err == nil {
		t.Error("files are written through a link")
	}
	if left, _ := os.ReadDir(elsewhere); len(left) > 0 {
		t.Errorf("files are elsewhere: %v", left)
	}
}

func TestGetKnowsItsLanguages(t *testing.T) {
	if code, _, errs := sublet(t, "", "get", "n", "-o", "png"); code != exitInput || !strings.Contains(errs, "ansible, clab, dot, mermaid, vxdl, yaml") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, _, _ := sublet(t, "", "get", "n"); code != exitFailed { // no server
		t.Errorf("exit code %d without a server", code)
	}
}

// What comes of topologies in the shapes of containerlab's own examples is admitted.
func TestImportsAreAdmitted(t *testing.T) {
	files, err := filepath.Glob("../../vnet/clab/testdata/real/*.clab.yml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "request.yaml")
			if code, _, errs := sublet(t, "", "import", "--lossy", name, "-w", out); code != exitDone {
				t.Fatal(errs)
			}
			if code, said, errs := sublet(t, "", "up", "--dry-run", "--substrate", "demo", out); code != exitDone {
				t.Errorf("exit code %d: %s%s", code, said, errs)
			}
		})
	}
}
