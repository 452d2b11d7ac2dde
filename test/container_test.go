package test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// instruction is one of a Containerfile (Containerfile(5)).
type instruction struct{ name, args string }

func readContainerfile(t *testing.T) []instruction {
	t.Helper()
	text, err := os.ReadFile(examples + "ci/Containerfile")
	need(t, err)
	text = regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAll(text, nil)
	var found []instruction
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "" {
			found = append(found, instruction{name, strings.Join(strings.Fields(args), " ")})
		}
	}
	return found
}

// recipe is what examples/ci/Containerfile says.
type recipe struct {
	suite, workdir string
	packages       []string
	copies         map[string]string // from the sources' top into the image
	entry, command []string
}

var (
	fromDebian  = regexp.MustCompile(`^docker\.io/library/debian:(\d+)-slim$`)
	aptPackages = regexp.MustCompile(`apt-get install -y --no-install-recommends ([a-z0-9.+ -]+) &&`)
)

// suites are Debian's releases by number.
var suites = map[string]string{"12": "bookworm", "13": "trixie"}

func readRecipe(t *testing.T) recipe {
	t.Helper()
	r := recipe{copies: map[string]string{}}
	for i, in := range readContainerfile(t) {
		switch from := fromDebian.FindStringSubmatch(in.args); {
		case (i == 0) != (in.name == "FROM"):
			t.Fatalf("instruction %d is %s: FROM is the first, and there is one", i, in.name)
		case in.name == "FROM" && from != nil && suites[from[1]] != "":
			r.suite = suites[from[1]]
		case in.name == "RUN" && aptPackages.MatchString(in.args):
			r.packages = append(r.packages, strings.Fields(aptPackages.FindStringSubmatch(in.args)[1])...)
			if out, err := exec.Command("sh", "-n", "-c", in.args).CombinedOutput(); err != nil {
				t.Fatalf("RUN %s: %v\n%s", in.args, err, out)
			}
		case in.name == "COPY" && len(strings.Fields(in.args)) == 2:
			paths := strings.Fields(in.args)
			r.copies[paths[0]] = paths[1]
		case in.name == "WORKDIR" && filepath.IsAbs(in.args):
			r.workdir = in.args
		case in.name == "ENTRYPOINT":
			need(t, json.Unmarshal([]byte(in.args), &r.entry))
		case in.name == "CMD":
			need(t, json.Unmarshal([]byte(in.args), &r.command))
		default:
			t.Fatalf("%s %s: this is not known here", in.name, in.args)
		}
	}
	return r
}

// TestContainerfile: what is copied is there or made by make, packages are Debian's and
// what the program needs is among them, and the entry point is in the image.
func TestContainerfile(t *testing.T) {
	r := readRecipe(t)
	makefile, err := os.ReadFile("../Makefile")
	need(t, err)
	for source := range r.copies {
		if _, err := os.Stat(filepath.Join("..", source)); err != nil && !strings.Contains(string(makefile), "\n"+source+":") {
			t.Errorf("COPY %s: it is not there, and make does not make it", source)
		}
	}
	for _, name := range []string{"util-linux", "iproute2", "iputils-ping", "frr"} {
		if !slices.Contains(r.packages, name) {
			t.Errorf("the package %s is not installed, which tools/install-deps says is used", name)
		}
	}
	for _, name := range append(slices.Clone(r.entry[:1]), r.entry[len(r.entry)-1]) {
		copied := slices.Collect(func(yield func(string) bool) {
			for _, to := range r.copies {
				if !yield(filepath.Base(to)) {
					return
				}
			}
		})
		if !slices.Contains(append(copied, r.packages...), name) {
			t.Errorf("ENTRYPOINT: %s is in no package and is not copied", name)
		}
	}
	if len(r.command) == 0 || r.workdir == "" {
		t.Error("there is no CMD or no WORKDIR")
	}
	knownToApt(t, r.packages)
}

func knownToApt(t *testing.T, packages []string) {
	t.Helper()
	known, err := exec.Command("apt-cache", "--generate", "pkgnames").Output()
	if err != nil || len(known) < 1<<16 {
		t.Skip("apt knows no packages here")
	}
	names := strings.Fields(string(known))
	for _, name := range packages {
		if !slices.Contains(names, name) {
			t.Errorf("Debian has no package %s", name)
		}
	}
}

// TestSoakContainer makes the tree that the Containerfile describes, and runs a job by
// its entry point in it, in namespaces of its own: the lab is made and taken down, and
// the job's exit code is the container's.
func TestSoakContainer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("making namespaces takes root")
	}
	for _, program := range []string{"mmdebstrap", "unshare", "pivot_root"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	r := readRecipe(t)
	tree := r.tree(t)
	for job, code := range map[string]string{
		"examples/ci/job.sh artefacts && test -s artefacts/test.log && test -s artefacts/packets.pcapng": "0",
		"sublet leases; exit 7": "7",
	} {
		entry := strings.Join(r.entry, " ")
		script := "cd " + r.workdir + "\n" + entry + " sh -c '" + job + "' || code=$?\necho \"code=${code:-0}\"\ntest -z \"$(ls /run/netns)\"\necho emptied\n"
		need(t, os.WriteFile(filepath.Join(tree, "root/job"), []byte(script), 0o755))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd := exec.CommandContext(ctx, "unshare", "--mount", "--uts", "--ipc", "--pid", "--net", "--fork", "--kill-child", "fresh/enter", tree, "/root/job")
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), "\ncode="+code+"\n") || !strings.Contains(string(out), "\nemptied\n") {
			t.Errorf("%s: %v: not %s, or something is left\n%s", job, err, code, last(out, 4000))
		}
	}
}

// tree is what the image would have.
func (r recipe) tree(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sublet-container")
	need(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	tree := filepath.Join(dir, "debian")
	cmd := exec.CommandContext(t.Context(), "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--include="+strings.Join(r.packages, ","), r.suite, tree)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("Debian cannot be had: %v\n%s", err, last(out, 1000))
	}
	for from, to := range r.copies {
		path := filepath.Join("..", from)
		if from == "bin/sublet" {
			path = program
		}
		text, err := os.ReadFile(path)
		need(t, err)
		need(t, os.WriteFile(filepath.Join(tree, to), text, 0o755))
	}
	work := filepath.Join(tree, r.workdir)
	need(t, os.MkdirAll(work, 0o755))
	need(t, os.CopyFS(filepath.Join(work, "examples"), os.DirFS("../examples")))
	return tree
}

// TestSoakBesideLab: a signal to the entry point ends the command, and the lab after it.
func TestSoakBesideLab(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces takes root")
	}
	run := shortDir(t)
	before := census(run)
	cmd := exec.Command(examples+"ci/beside-lab.sh", "sh", "-c", "echo ready; exec sleep 1000")
	cmd.Env = append(os.Environ(), "SUBLET_RUN="+run, "LAB="+labName(run), "PATH="+filepath.Dir(absolute(t, program))+":"+os.Getenv("PATH"))
	out, err := cmd.StdoutPipe()
	need(t, err)
	need(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
	}
	need(t, cmd.Process.Signal(syscall.SIGTERM))
	for lines.Scan() {
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("it ends with %v", err)
	}
	if diff := difference(before, census(run)); diff != "" {
		t.Errorf("left on the machine, or gone from it:\n%s", diff)
		_ = exec.Command(program, "lab", "down", "--run", run).Run()
	}
}
