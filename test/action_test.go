package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// action is the metadata of a composite action ("Metadata syntax reference", GitHub
// Docs), as far as actions of that kind may have it.
type action struct {
	Name        string
	Author      string
	Description string
	Inputs      map[string]struct {
		Description        string
		Required           bool
		Default            *string
		DeprecationMessage string `yaml:"deprecationMessage"`
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []step
	}
	Branding struct{ Icon, Color string }
}

type step struct {
	ID, Name, If, Run, Shell, Uses string
	With, Env                      map[string]string
	WorkingDirectory               string `yaml:"working-directory"`
	ContinueOnError                bool   `yaml:"continue-on-error"`
}

var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	expression = regexp.MustCompile(`\$\{\{ *(.*?) *\}\}`)
	released   = regexp.MustCompile(`^[\w-]+/[\w./-]+@[\w.-]+$`)
)

func readAction(t *testing.T) action {
	t.Helper()
	text, err := os.ReadFile(examples + "ci/action.yml")
	need(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var a action
	need(t, decoder.Decode(&a))
	return a
}

// TestActionIsComposite holds examples/ci/action.yml to the published syntax: what must
// be there, what may be there, and that names which are used are declared.
func TestActionIsComposite(t *testing.T) {
	a := readAction(t)
	if a.Name == "" || a.Description == "" || a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 {
		t.Errorf("it has no name, no description, no steps, or is none of composite kind: %+v", a)
	}
	for id, in := range a.Inputs {
		if !identifier.MatchString(id) || in.Description == "" || in.Required == (in.Default != nil) {
			t.Errorf("input %s: it must have a good name, a description, and a default unless it is required", id)
		}
	}
	known := map[string]bool{"github.action_path": true, "always()": true}
	for id := range a.Inputs {
		known["inputs."+id] = true
	}
	for i, s := range a.Runs.Steps {
		s.isGood(t, known)
		if s.ID != "" && known[s.ID] || s.ID != "" && !identifier.MatchString(s.ID) {
			t.Errorf("step %d: the identifier %q is there already, or is none", i, s.ID)
		}
		known[s.ID] = true
		for _, found := range regexp.MustCompile(`"([\w-]+)=.*>>"\$GITHUB_OUTPUT"`).FindAllStringSubmatch(s.Run, -1) {
			known["steps."+s.ID+".outputs."+found[1]] = s.ID != ""
		}
	}
	for id, out := range a.Outputs {
		if !identifier.MatchString(id) || out.Description == "" || out.Value == "" {
			t.Errorf("output %s: it must have a good name, a description and a value", id)
		}
		knows(t, "output "+id, known, out.Value)
	}
}

// TestGuideCallsTheAction: the workflow of the guide states inputs that there are, and
// those that must be stated.
func TestGuideCallsTheAction(t *testing.T) {
	text, err := os.ReadFile("../docs/guides/ci.md")
	need(t, err)
	var workflow struct {
		Jobs map[string]struct{ Steps []step }
	}
	need(t, yaml.Unmarshal(firstYAML.FindSubmatch(text)[1], &workflow))
	a, steps := readAction(t), workflow.Jobs["network"].Steps
	if len(steps) == 0 {
		t.Fatal("the guide has no steps")
	}
	with := steps[len(steps)-1].With
	for id := range with {
		if _, ok := a.Inputs[id]; !ok {
			t.Errorf("there is no input %s", id)
		}
	}
	for id, in := range a.Inputs {
		if _, stated := with[id]; in.Required && !stated {
			t.Errorf("the input %s is not stated", id)
		}
		if !strings.Contains(string(text), "`"+id+"`") {
			t.Errorf("the guide does not explain the input %s", id)
		}
	}
}

// isGood says what is wrong with a step. Scripts get inputs by their environment: an
// expression in a script would be part of it.
func (s step) isGood(t *testing.T, known map[string]bool) {
	t.Helper()
	if s.Name == "" || (s.Run == "") == (s.Uses == "") || (s.Run == "") != (s.Shell == "") {
		t.Errorf("%q: a step has a name, and either run and shell, or uses", s.Name)
	}
	if s.Uses != "" && !released.MatchString(s.Uses) || s.Uses == "" && len(s.With) > 0 {
		t.Errorf("%q: uses %q is no action at a version, or with stands beside run", s.Name, s.Uses)
	}
	if expression.MatchString(s.Run) {
		t.Errorf("%q: the script has an expression within: it belongs into env", s.Name)
	}
	for _, values := range []map[string]string{s.With, s.Env} {
		for _, value := range values {
			knows(t, s.Name, known, value)
		}
	}
	for _, term := range terms(s.If) {
		if operand, _, _ := strings.Cut(term, " "); term != "" && !known[operand] {
			t.Errorf("%q: if %q knows no %q", s.Name, s.If, operand)
		}
	}
	if s.Run == "" {
		return
	}
	if s.Shell != "bash" {
		t.Errorf("%q: the shell is %q", s.Name, s.Shell)
	}
	check := exec.Command("bash", "-n")
	check.Stdin = strings.NewReader(s.Run)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%q: bash does not read it: %v\n%s", s.Name, err, out)
	}
}

func knows(t *testing.T, where string, known map[string]bool, value string) {
	t.Helper()
	for _, found := range expression.FindAllStringSubmatch(value, -1) {
		if !known[found[1]] {
			t.Errorf("%s: nothing before it is called %q", where, found[1])
		}
	}
}

// terms are the parts of a condition, of which all must hold.
func terms(condition string) []string { return strings.Split(condition, " && ") }

// runner runs the steps of an action as GitHub's runner does, as far as this action
// needs it: expressions that are names, conditions of comparisons, files for outputs
// and paths, and no other actions.
type runner struct {
	t      *testing.T
	dir    string
	values map[string]string
	env    []string
	path   string
	out    strings.Builder
}

func newRunner(t *testing.T, a action, run string, with map[string]string) *runner {
	t.Helper()
	r := &runner{t: t, dir: t.TempDir(), path: os.Getenv("PATH"), values: map[string]string{"github.action_path": absolute(t, examples+"ci")}}
	for id, in := range a.Inputs {
		if in.Default != nil {
			r.values["inputs."+id] = *in.Default
		}
	}
	for id, value := range with {
		if _, ok := a.Inputs[id]; !ok {
			t.Fatalf("no input %s", id)
		}
		r.values["inputs."+id] = value
	}
	r.env = append(os.Environ(), "SUBLET_RUN="+run, "RUNNER_TEMP="+r.dir)
	return r
}

func (r *runner) expand(text string) string {
	return expression.ReplaceAllStringFunc(text, func(e string) string { return r.values[expression.FindStringSubmatch(e)[1]] })
}

// applies says whether a step runs, after a failure or without one.
func (r *runner) applies(s step, failed bool) bool {
	r.t.Helper()
	always := false
	for _, term := range terms(s.If) {
		name, rest, compares := strings.Cut(term, " ")
		switch {
		case term == "always()":
			always = true
		case term == "":
		case !compares || rest[:2] != "==" && rest[:2] != "!=":
			r.t.Fatalf("%q: this runner does not know %q", s.Name, term)
		case (r.values[name] == strings.Trim(rest[3:], "'")) != (rest[:2] == "=="):
			return false
		}
	}
	return always || !failed
}

// run runs the steps, and gives the exit code of the first that failed.
func (r *runner) run(a action) (code int) {
	r.t.Helper()
	for _, s := range a.Runs.Steps {
		if !r.applies(s, code != 0) || s.Run == "" {
			continue
		}
		if got := r.script(s); got != 0 && code == 0 {
			code = got
		}
	}
	return code
}

func (r *runner) script(s step) int {
	r.t.Helper()
	file := func(name string) string {
		path := filepath.Join(r.dir, name)
		need(r.t, os.WriteFile(path, nil, 0o644))
		return path
	}
	output, paths, script := file("output"), file("path"), file("script")
	need(r.t, os.WriteFile(script, []byte(s.Run), 0o644))
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", script)
	cmd.Env = append(r.env, "PATH="+r.path, "GITHUB_OUTPUT="+output, "GITHUB_PATH="+paths)
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+r.expand(value))
	}
	cmd.Dir = r.dir
	done := runCommand(cmd)
	r.out.WriteString("--- " + s.Name + "\n" + done.out + done.err)
	for _, line := range r.lines(output) {
		name, value, _ := strings.Cut(line, "=")
		r.values["steps."+s.ID+".outputs."+name] = value
	}
	for _, line := range r.lines(paths) {
		r.path = line + ":" + r.path
	}
	return done.code
}

func (r *runner) lines(file string) []string {
	r.t.Helper()
	text, err := os.ReadFile(file)
	need(r.t, err)
	return strings.Fields(strings.ReplaceAll(string(text), " ", "\u00a0"))
}

// TestSoakAction runs the steps in order: the command's exit code is the step's, the
// artefacts are there, and neither lab nor network is left, whatever went wrong.
func TestSoakAction(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces takes root")
	}
	a := readAction(t)
	network := absolute(t, examples+"ci/network.yaml")
	for name, c := range map[string]struct {
		with  map[string]string
		code  int
		files map[string]string
	}{
		"passes": {map[string]string{"run": "ping -c 3 -i 0.2 server", "node": "ci/client", "captures": "ci/access"}, 0,
			map[string]string{"run.log": "bytes from", "lease.json": `"ci"`, "events.json": "running", "ci-server.log": "", "ci-access.pcapng": "\n\r\r\n"}},
		"fails":          {map[string]string{"run": "echo broken; exit 7", "node": "ci/client"}, 7, map[string]string{"run.log": "broken", "events.json": "running"}},
		"on the runner":  {map[string]string{"run": "sublet wait ci --for reachable && sublet leases"}, 0, map[string]string{"run.log": "ci"}},
		"takes too long": {map[string]string{"run": "sleep 1000", "node": "ci/client", "timeout": "1s"}, 124, nil},
		"no such file":   {map[string]string{"run": "true", "network": "none.yaml"}, 2, nil},
		"no such lab":    {map[string]string{"run": "true", "substrate": "none.yaml"}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := shortDir(t)
			before := census(run)
			with := map[string]string{"network": network, "lab": labName(run), "program": absolute(t, program), "packages": ""}
			for id, value := range c.with {
				with[id] = value
			}
			r := newRunner(t, a, run, with)
			if code := r.run(a); code != c.code {
				t.Errorf("exit code %d, not %d\n%s", code, c.code, r.out.String())
			}
			for file, has := range c.files {
				if text, err := os.ReadFile(filepath.Join(r.dir, "sublet-artefacts", file)); err != nil || !strings.Contains(string(text), has) {
					t.Errorf("%s: %v, %.500q\n%s", file, err, text, r.out.String())
				}
			}
			if diff := difference(before, census(run)); diff != "" {
				t.Errorf("left on the machine, or gone from it:\n%s\n%s", diff, r.out.String())
				_ = exec.Command(program, "lab", "down", "--run", run).Run()
			}
		})
	}
}
