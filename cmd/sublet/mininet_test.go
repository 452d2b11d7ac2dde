package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// export runs tools/mininet/export.py, with Mininet where it is installed.
func export(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	c := exec.Command(python, append([]string{"-B", "../../tools/mininet/export.py"}, args...)...)
	var said, told strings.Builder
	c.Stdout, c.Stderr = &said, &told
	err = c.Run()
	return said.String(), told.String(), err
}

func custom(t *testing.T, text string) string {
	t.Helper()
	name := t.TempDir() + "/custom.py"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// What a topology of Mininet becomes can be asked for.
func TestMininetExport(t *testing.T) {
	text, errs, err := export(t, "../../tools/mininet/example.py", "floors,1,line=2.5")
	if err != nil {
		t.Fatal(errs)
	}
	code, out, errs := sublet(t, text, "import", "-")
	for _, want := range []string{"network: floors", "{name: up1-up, ends: [up1, up], rate: 50Mbit}", "{name: up-down, ends: [up, down], rate: 2500kbit, impair: {delay: 2ms}}"} {
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %q is not in\n%s%s", code, want, out, errs)
		}
	}
	example, _, _ := export(t, "../../tools/mininet/example.py")
	if kept, err := os.ReadFile("../../examples/import/floors.json"); err != nil || string(kept) != example {
		t.Errorf("examples/import/floors.json is not what the example is written as: %v", err)
	}
}

const twoTopologies = `
from mininet.topo import Topo
from mininet.node import Node
from mininet.util import irange
class Router(Node):
    def config(self, **params):
        self.cmd("sysctl net.ipv4.ip_forward=1")
class A(Topo):
    def build(self, n):
        for i in irange(1, n):
            self.addHost("h%d" % i)
class B(Topo):
    def __init__(self):
        Topo.__init__(self)
        self.addLink(self.addNode("r", cls=Router), self.addHost("h"), bw=1, params1={"ip": "10.0.0.1/8"})
if __name__ == "__main__":
    raise SystemExit("it was run")
`

func TestMininetExportOfClasses(t *testing.T) {
	file := custom(t, twoTopologies)
	for args, want := range map[string]string{
		"": "choose a topology: A, B", "C": "choose a topology: A, B", "A": "state arguments as A,ARGUMENT", "A,1,2": "state arguments as",
	} {
		if _, errs, err := export(t, append([]string{file}, strings.Fields(args)...)...); err == nil || !strings.Contains(errs, want) {
			t.Errorf("%q: %v, %s", args, err, errs)
		}
	}
	if _, errs, err := export(t, custom(t, "x = 1\n")); err == nil || !strings.Contains(errs, "the file has none") {
		t.Errorf("%v, %s", err, errs)
	}
	text, _, _ := export(t, file, "A,3")
	if code, out, errs := sublet(t, text, "import", "-"); code != exitDone || !strings.Contains(out, "name: h3") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	text, _, _ = export(t, file, "B")
	code, out, errs := sublet(t, text, "import", "-", "--lossy")
	if code != exitDone || !strings.Contains(out, "{name: r, protocol: static}") || !strings.Contains(errs, "what class Router does is left out") || !strings.Contains(out, "address: 10.0.0.1/8") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// Scripts that make a network by themselves, in the ways that Mininet's examples do.
var scriptsOfMininet = map[string]struct{ text, want, said string }{
	"node by node": {`
net = Mininet(controller=Controller)
net.addController("c0")
h1, h2 = net.addHost("h1", ip="10.0.0.1"), net.addHost("h2", ip="10.0.0.2")
s3 = net.addSwitch("s3")
net.addLink(h1, s3)
link = net.addLink(h2, s3)
link.intf1.config(bw=5)
h1.cmd("touch /tmp/left")
h2.setIP("10.0.0.9/8")
net.start()
raise SystemExit("it was started")
`, "address: 10.0.0.9", "controller c0 is left out|h2 at s3: config is left out|h1: cmd touch /tmp/left is left out"},
	"of a topology, with arguments": {`
class Two(Topo):
    def build(self, n):
        for i in range(int(n)):
            self.addLink(self.addHost("h%d" % i), "s1" if i else self.addSwitch("s1"))
net = Mininet(Two(sys.argv[1]), link=partial(TCLink, delay="2ms", bw=10))
net.run(None)
`, "rate: 10Mbit, impair: {delay: 2ms}", ""},
	"started by its parts": {`
net = Mininet(build=False)
c = net.addController("c1", port=6633)
net.addLink(net.addSwitch("s1"), net.addHost("h1"))
net.build()
c.start()
`, "ends: [s1, h1]", "controller c1"},
	"none": {"x = 1\n", "", "starts no network of the class Mininet"},
}

func TestMininetScripts(t *testing.T) {
	const head = "import sys\nfrom functools import partial\nfrom mininet.net import Mininet\nfrom mininet.topo import Topo\nfrom mininet.node import Controller\nfrom mininet.link import TCLink\n"
	for name, c := range scriptsOfMininet {
		t.Run(name, func(t *testing.T) {
			text, errs, err := export(t, "--run", custom(t, head+c.text), "--", "2")
			for _, said := range strings.Split(c.said, "|") {
				if !strings.Contains(errs, said) {
					t.Errorf("%q is not told: %s", said, errs)
				}
			}
			if c.want == "" {
				if err == nil {
					t.Error("a network of nothing")
				}
				return
			}
			code, out, told := sublet(t, text, "import", "-")
			if err != nil || code != exitDone || !strings.Contains(out, c.want) {
				t.Errorf("%v, exit code %d:\n%s%s%s", err, code, errs, out, told)
			}
		})
	}
}
