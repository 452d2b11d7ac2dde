package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// busyboxImage makes the image of the examples, of a package of Debian's, and returns
// the directory that it is in.
func busyboxImage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if r := runCommand(exec.Command(examples+"image.sh", filepath.Join(dir, "busybox.tar"))); r.code != 0 {
		if _, err := exec.LookPath("busybox"); err == nil {
			t.Fatalf("%s%s", r.out, r.err)
		}
		t.Skipf("no package of Debian's: %s%s", r.out, r.err)
	}
	return dir
}

// A node of an image runs the image's entry point with its variables and its port,
// which is published; what it writes is its own, and goes with it.
func TestImageOfALease(t *testing.T) {
	t.Parallel()
	images := busyboxImage(t)
	if err := os.WriteFile(filepath.Join(images, "broken.tar"), []byte(strings.Repeat("no archive", 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	l := newLab(t, examples+"ways-out/substrate.yaml", "--images", images)
	request := `network: shop
nodes:
  - {name: plain, image: busybox.tar}
  - {name: own, image: busybox.tar, env: {GREETING: of the request}, run: [{entrypoint: true, cmd: [httpd, -f, -p, "8000", -h, /bin]}]}
  - {name: host}
routers:
  - {name: out, nat: campus, publish: ["8070:plain:80"]}
links:
  - {ends: [plain, out], rate: 10Mbit}
  - {ends: [plain, own], rate: 10Mbit}
  - {ends: [plain, host], rate: 10Mbit}
`
	l.must("up", "--no-wait", l.file("broken.yaml", "network: broken\nnodes: [{name: a, image: broken.tar}, {name: b}]\nlinks: [{ends: [a, b]}]\n"))
	l.up(request)
	if out := l.must("leases", "shop"); strings.Contains(out, "repairs:") {
		t.Errorf("that images came is said to be a repair:\n%s", out)
	}
	eventually(t, 20*time.Second, func() error {
		r := runCommand(exec.Command("ip", "netns", "exec", labName(l.run)+".internet", "timeout", "20", "python3", "-c",
			"import urllib.request; print(urllib.request.urlopen('http://"+l.outside("shop").String()+":8070/', timeout=5).read().decode())"))
		if !strings.Contains(r.out, "It works") {
			return fmt.Errorf("from outside: %q %s", r.out, r.err)
		}
		return nil
	})
	for node, want := range map[string]string{"plain": "from the image /srv", "own": "of the request /srv"} {
		if out := l.must("exec", "shop/"+node, "--", "sh", "-c", "echo $GREETING $PWD"); !strings.HasPrefix(out, want) {
			t.Errorf("%s has %q, want %q", node, out, want)
		}
	}
	if out := l.must("ps", "shop/own"); !strings.Contains(out, "/bin/busybox httpd -f -p 8000 -h /bin") {
		t.Errorf("own runs\n%s", out)
	}
	eventually(t, 20*time.Second, func() error {
		view := decode[[]struct{ Exposed map[string][]string }](t, l.must("leases", "shop", "-o", "json"))
		if want := map[string][]string{"plain": {"80/tcp"}, "own": {"80/tcp"}}; len(view) != 1 || !reflect.DeepEqual(view[0].Exposed, want) {
			return fmt.Errorf("exposed are %v", view)
		}
		return nil
	})
	if out := l.must("events", "broken"); strings.Contains(out, "running") || !strings.Contains(out, "broken.tar") {
		t.Errorf("a network whose image is none:\n%s", out)
	}
	l.must("down", "broken")
	if r := l.sublet("exec", "shop/plain", "--", "ls", "/usr"); r.code == 0 {
		t.Errorf("it sees files of the host: %s", r.out)
	}
	l.must("exec", "shop/plain", "--", "sh", "-c", "rm /srv/index.html && echo mine >/srv/index.html")
	if out := l.must("exec", "shop/own", "--", "cat", "/srv/index.html"); !strings.Contains(out, "It works") {
		t.Errorf("what one node wrote the other reads: %q", out)
	}
	l.settled()
	l.must("down", "shop")
	l.up(request)
	if out := l.must("exec", "shop/plain", "--", "cat", "/srv/index.html"); !strings.Contains(out, "It works") {
		t.Errorf("the next lease reads %q", out)
	}
}
