package test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const examples = "../examples/"

// exampleLabs are the labs of the examples, a name or a file, and what runs in
// each at the same time.
var exampleLabs = map[string][]string{
	"demo":                                  {"*.yaml", "import/*", "vxdl/*", "ci/network.yaml"},
	examples + "ways-out/substrate.yaml":    {"ways-out/*.yaml"},
	examples + "demo/substrate.yaml":        {"demo/*.yaml"},
	examples + "substrate/one-host.yaml":    {"hello.yaml"},
	examples + "substrate/two-hosts.yaml":   {"hello.yaml"},
	examples + "substrate/three-hosts.yaml": {"triangle-ospf.yaml"},
	examples + "substrate/leaf-spine.yaml":  {"star.yaml"},
}

// exampleElsewhere are what is no request and no substrate, which other tests run:
// those of vxswitch/scenario, datapath/vxswitch/live and vnet/file, TestJobOfCI,
// TestSoakAction, TestSoakContainer, TestOpenFlowSwitch, TestImageOfALease and
// TestSoakMachineBesideContainers (which brings an image).
var exampleElsewhere = []string{"vxswitch/", "hosting/", "policy/", "ci/job.sh", "ci/action.yml", "ci/Containerfile", "ci/beside-lab.sh", "openflow/", "machine.yaml", "image.sh"}

// examplesAtOnce is how many examples a lab has beside one another: one machine
// does not carry what all of them ask for.
const examplesAtOnce = 5

func isElsewhere(file string) bool {
	return slices.ContainsFunc(exampleElsewhere, func(part string) bool { return strings.HasPrefix(file, filepath.Clean(examples+part)) })
}

// TestSoakExamples deploys every request of the examples in its lab, beside some
// others of that lab.
func TestSoakExamples(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for substrate, patterns := range exampleLabs {
		seen[filepath.Clean(substrate)] = true
		var files []string
		for _, p := range patterns {
			found, err := filepath.Glob(examples + p)
			if err != nil || len(found) == 0 {
				t.Fatalf("%s: %v", p, err)
			}
			files = append(files, found...)
		}
		files = slices.DeleteFunc(files, func(f string) bool { return f == substrate || isElsewhere(filepath.Clean(f)) })
		for _, f := range files {
			seen[filepath.Clean(f)] = true
		}
		t.Run(filepath.Base(substrate), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, substrate, "--images", busyboxImage(t))
			for some := range slices.Chunk(files, examplesAtOnce) {
				l.must(append([]string{"up"}, some...)...)
				running := 0
				for _, lease := range l.leases() {
					if lease.State == "running" {
						running++
					}
				}
				if running != len(some) {
					t.Errorf("%d of %v run", running, some)
				}
				l.must("down", "--all")
			}
		})
	}
	for _, f := range everyExample(t) {
		if !seen[f] && !isElsewhere(f) {
			t.Errorf("%s runs in no lab", f)
		}
	}
}

func everyExample(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(examples, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, filepath.Clean(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestWebApplication: who comes from outside to the published port is answered by
// three tiers, in a browser too where there is one; the tiers behind are not
// reached, and the first does not reach the last.
func TestWebApplication(t *testing.T) {
	t.Parallel()
	l := newLab(t, examples+"ways-out/substrate.yaml", "--images", busyboxImage(t))
	l.must("up", examples+"ways-out/web-application.yaml")
	url := fmt.Sprintf("http://%s:8090/", l.outside("guestbook"))
	visit := func(want string, command ...string) {
		t.Helper()
		eventually(t, 10*time.Second, func() error {
			r := runCommand(exec.Command("ip", append([]string{"netns", "exec", labName(l.run) + ".internet", "timeout", "20"}, command...)...))
			if !strings.Contains(r.out, want) {
				return fmt.Errorf("%q, %s", r.out, r.err)
			}
			return nil
		})
	}
	fetch := "import urllib.request; print(urllib.request.urlopen('" + url + "', timeout=5).read().decode())"
	visit("<p>visit 1</p>", "python3", "-c", fetch)
	visit("<p>visit 2</p>", "python3", "-c", fetch)
	if browser, err := exec.LookPath("chromium"); err != nil {
		t.Log("not seen in a browser:", err)
	} else {
		visit("<p>visit ", browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--dump-dom", url)
	}
	for node, reaches := range map[string]bool{"app": true, "web": false} {
		if r := l.sublet("exec", "guestbook/"+node, "--", "timeout", "3", "wget", "-qO-", "http://db/cgi-bin/visit"); r.code == 0 != reaches {
			t.Errorf("%s reaches the database: %v, %s%s", node, !reaches, r.out, r.err)
		}
	}
	l.settled()
}

// TestJobOfCI: the job ends with its test's exit code, leaves its artefacts and no
// network.
func TestJobOfCI(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	for _, c := range []struct {
		name string
		args []string
		code int
		log  string
	}{
		{"passes", nil, 0, "Directory listing"}, {"fails", []string{"sh", "-c", "echo broken; exit 7"}, 7, "broken"},
	} {
		dir := filepath.Join(t.TempDir(), c.name)
		cmd := exec.Command(examples+"ci/job.sh", append([]string{dir}, c.args...)...)
		cmd.Env = append(os.Environ(), "SUBLET_RUN="+l.run, "PATH="+filepath.Dir(absolute(t, program))+":"+os.Getenv("PATH"))
		if r := runCommand(cmd); r.code != c.code {
			t.Errorf("%s: exit code %d\n%s%s", c.name, r.code, r.out, r.err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "test.log")); err != nil || !strings.Contains(string(text), c.log) {
			t.Errorf("%s: test.log %q, %v", c.name, text, err)
		}
		for _, artefact := range []string{"server.log", "packets.pcapng"} {
			if info, err := os.Stat(filepath.Join(dir, artefact)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %s: %v", c.name, artefact, err)
			}
		}
		if n := len(l.leases()); n > 0 && l.leases()[0].State != "ended" {
			t.Errorf("%s: %d leases are left", c.name, n)
		}
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
