package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sublet/vnet/file"
)

// sublet runs the program in this process, without a server.
func sublet(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	args = append([]string{"--run", filepath.Join(t.TempDir(), "none")}, args...)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	code = run(ctx, args, strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

func TestExitCodesOfUse(t *testing.T) {
	for line, want := range map[string]int{
		"":                           exitDone,
		"--help":                     exitDone,
		"nonsense":                   exitInput,
		"up":                         exitInput,
		"up --nonsense":              exitInput,
		"up /nonexistent":            exitInput,
		"down":                       exitInput,
		"down --all x":               exitInput,
		"down --all-tenants":         exitInput,
		"down --all-tenants --yes x": exitInput,
		"down --tenant x":            exitInput,
		"down --all --tenant ../x":   exitInput,
		"down --all --all-tenants --tenant x --yes":       exitInput,
		"down --all --server h:1 --cert x --key x --ca x": exitInput,
		"version":                          exitDone,
		"--version":                        exitDone,
		"upp":                              exitInput,
		"lab upp":                          exitInput,
		"leases --server h:1":              exitInput,
		"exec hello":                       exitInput,
		"leases -o xml":                    exitInput,
		"leases a b":                       exitInput,
		"stage n s -w":                     exitInput,
		"substrate get -w --to x":          exitInput,
		"policy --tenant x --all":          exitInput,
		"wait":                             exitInput,
		"wait n -l a=b":                    exitInput,
		"wait -l =":                        exitInput,
		"proof":                            exitInput,
		"proof n -l a=b":                   exitInput,
		"top n -l a=b":                     exitInput,
		"top -o xml":                       exitInput,
		"watch n -l a=b":                   exitInput,
		"watch -l =":                       exitInput,
		"events n -l a=b":                  exitInput,
		"leases":                           exitFailed, // no server
		"exec n/a":                         exitInput,
		"exec ../x true":                   exitInput,
		"exec n/a/b/c true":                exitInput,
		"capture n -w x":                   exitInput,
		"check":                            exitInput,
		"bench openflow":                   exitInput,
		"openflow run --dpid 1 --ports lo": exitInput,
		"openflow run --dpid 1 --controller ptcp::6653":             exitInput,
		"openflow run --dpid 1 --controller ptcp::6653 --ports p*,": exitInput,
		"check n --duration -1s":                                    exitInput,
		"graph n --form png":                                        exitInput,
		"convert /nonexistent":                                      exitInput,
		"agent --host ../x":                                         exitInput,
		"agent":                                                     exitInput,
		"paths":                                                     exitDone, // nobody runs any
		"paths -o xml":                                              exitInput,
		"paths --host h1":                                           exitInput,
		"paths run --host h1":                                       exitInput,
		"paths relay --host h1":                                     exitInput,
		"paths relay --host h1 --show":                              exitInput,
		"paths relay --host h1 --show --off":                        exitInput,
		"paths relay --host h --device all --sender 10.0.0.0/8 --inside 10.0.0.0/8 --shortcut x": exitInput,
		"paths relay --host ../x --device all --sender 10.0.0.0/8 --inside 10.0.0.0/8":           exitInput,
		"paths relay --host h --device all --sender x --inside 10.0.0.0/8":                       exitInput,
		"paths run --host h --device d --lists /nonexistent":                                     exitInput,
		"paths run --host h --device d --ospf /x --mode best":                                    exitInput,
		"paths run --host h --device d --ospf /x --by best":                                      exitInput,
		"paths run --host h --device d --ospf /x -k 65":                                          exitInput,
		"paths run --host h --device d --ospf /x --stretch 0.5":                                  exitInput,
		"paths run --host h --device d --ospf /x --probe 1us":                                    exitInput,
		"lab up line:x":           exitInput,
		"lab up /nonexistent":     exitInput,
		"serve --substrate /none": exitInput,
		"serve --substrate -":     exitInput,
		"offers":                  exitInput,
		"offers /nonexistent":     exitInput,
		"calendar --from x":       exitInput,
		"calendar --until 0s":     exitInput,
		"calendar":                exitFailed, // no server
		"fail link":               exitInput,
		"restore cable h1-h2":     exitInput,
		"mend cable h1-h2":        exitInput,
		"fail link h1-h2":         exitFailed, // no server
		"bench embed":             exitInput,
		"bench embed /none":       exitInput,
		"bench embed -":           exitInput, // no instance
		"completion bash":         exitDone,
		"doctor -o json":          exitDone,
	} {
		t.Run(line, func(t *testing.T) {
			code, _, errs := sublet(t, "hosts: [}", strings.Fields(line)...)
			if code != want {
				t.Errorf("sublet %s: exit code %d, not %d: %s", line, code, want, errs)
			}
			if code != exitDone && strings.Count(errs, "\n") != 1 {
				t.Errorf("sublet %s says more or less than one line: %q", line, errs)
			}
		})
	}
}

func TestEveryCommandHasAnExampleAndEveryNounAnOutput(t *testing.T) {
	nouns := map[string]bool{"leases": true, "plan": true, "hosts": true, "links": true, "offers": true, "calendar": true, "fail": true, "restore": true, "lab": true, "doctor": true, "check": true, "embed": true}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && c.Example == "" && c.Name() != "help" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		if nouns[c.Name()] && c.Flags().Lookup("output") == nil {
			t.Errorf("%s has no --output", c.CommandPath())
		}
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk((&app{}).root())
}

// Every list can be followed, and networks be chosen by their labels where they are listed.
func TestListsHaveWatchAndSelector(t *testing.T) {
	root := (&app{}).root()
	for flag, lines := range map[string][]string{
		"watch": {
			"calendar", "chains", "events", "flows", "flows status", "hosts", "lab", "leases", "ledger", "link show", "links", "maintenance list", "overlay",
			"paths", "plan", "policy", "proof", "ps", "servers", "stage", "substrate get", "token list", "vxswitch status",
		},
		"selector": {"down", "events", "leases", "proof", "top", "wait", "watch"},
	} {
		for _, line := range lines {
			c, _, err := root.Find(strings.Fields(line))
			if err != nil || c.Flags().Lookup(flag) == nil {
				t.Errorf("sublet %s has no --%s: %v", line, flag, err)
			}
		}
	}
}

// What comes back from the other language is the request itself, or nothing is
// written unless less is asked for.
func TestConvertThereAndBack(t *testing.T) {
	examples, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatal("no examples", err)
	}
	lossy := 0
	for _, name := range examples {
		code, xml, errs := sublet(t, "", "convert", name)
		if code == exitFailed {
			lossy++
			out := filepath.Join(t.TempDir(), "out.xml")
			if again, _, _ := sublet(t, "", "convert", name, "-w", out); again != exitFailed || xml != "" || !strings.Contains(errs, "sublet: lost: ") || !strings.Contains(errs, "--lossy") {
				t.Errorf("convert %s: exit codes %d and %d, %q, %s", name, code, again, xml, errs)
			}
			if _, err := os.Stat(out); err == nil {
				t.Errorf("convert %s wrote something", name)
			}
			code, xml, errs = sublet(t, "", "convert", "--lossy", name)
		} else if _, yaml, _ := sublet(t, xml, "convert", "-"); !sameRequest(t, name, yaml) {
			t.Errorf("convert %s back gives another request:\n%s", name, yaml)
		}
		if code != exitDone || !strings.Contains(xml, "virtualInfrastructure") {
			t.Errorf("convert %s: exit code %d, %s", name, code, errs)
			continue
		}
		if code, yaml, errs := sublet(t, xml, "convert", "-"); code != exitDone || !strings.Contains(yaml, "network:") {
			t.Errorf("convert %s back: exit code %d, %s", name, code, errs)
		}
	}
	if lossy == 0 || lossy == len(examples) {
		t.Errorf("%d of %d examples lose something", lossy, len(examples))
	}
}

// sameRequest compares what two texts ask for.
func sameRequest(t *testing.T, name, yaml string) bool {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	first, err := file.ParseRequest(name, text)
	if err != nil {
		t.Fatal(err)
	}
	second, err := file.ParseRequest("back", []byte(yaml))
	return err == nil && reflect.DeepEqual(first, second)
}

// Nor is anything of VXDL dropped in silence.
func TestConvertFromVXDLLosesNothingUnasked(t *testing.T) {
	const xml = `<description xmlns="http://www.vxdlforum.org/vxdl"><virtualInfrastructure><id>n</id><novelty>x</novelty><vNode><id>a</id></vNode></virtualInfrastructure></description>`
	code, out, errs := sublet(t, xml, "convert", "-")
	if code != exitFailed || out != "" || !strings.Contains(errs, "sublet: lost: ") {
		t.Errorf("exit code %d, %q, %s", code, out, errs)
	}
	if code, out, errs = sublet(t, xml, "convert", "-", "--lossy"); code != exitDone || !strings.Contains(out, `network: "n"`) {
		t.Errorf("--lossy: exit code %d, %q, %s", code, out, errs)
	}
}

func TestDoctorSaysTheSameInAllForms(t *testing.T) {
	_, text, _ := sublet(t, "", "doctor", "-o", "json")
	var findings []finding
	if err := json.Unmarshal([]byte(text), &findings); err != nil || len(findings) == 0 {
		t.Fatalf("%v in %s", err, text)
	}
	_, table, _ := sublet(t, "", "doctor")
	_, yaml, _ := sublet(t, "", "doctor", "-o", "yaml")
	for _, f := range findings {
		if !strings.Contains(table, f.Feature) || !strings.Contains(yaml, f.Feature) {
			t.Errorf("%s is missing in the table or in yaml", f.Feature)
		}
		if f.Means == "" {
			t.Errorf("%s does not say what it means", f.Feature)
		}
	}
}

// The README's requests and commands are real.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		request, _, _ := strings.Cut(block, "```")
		if code, _, errs := sublet(t, request, "convert", "-"); code != exitDone {
			t.Errorf("a request in the README is refused: %s", errs)
		}
	}
	root := (&app{}).root()
	_, table, _ := strings.Cut(string(text), "## Commands")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "completion" && c.Name() != "help" && !regexp.MustCompile("`(sublet )?"+c.Name()+"[ `]").MatchString(table) {
			t.Errorf("the README's table lacks sublet %s", c.Name())
		}
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "sublet" {
			if c, _, err := root.Find(words[1:]); err != nil || c == root {
				t.Errorf("the README uses an unknown command: %s", line)
			}
		}
	}
}
