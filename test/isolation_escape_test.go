package test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// victims are what an attacker is told of the world outside.
type victims struct {
	run, host, secret, public, abstract string
}

// escape is something that must fail inside a node.
type escape struct {
	what string
	try  func(victims) error
}

// escapeInside tries them all and says which succeeded.
func escapeInside(args []string) error {
	v := victims{run: args[0], host: args[1], secret: args[2], public: args[3], abstract: args[4]}
	runtime.LockOSThread()
	for _, e := range slices.Concat(fileEscapes, processEscapes, kernelEscapes, networkEscapes, mountEscapes) {
		if e.try(v) == nil {
			fmt.Println(e.what)
		}
	}
	return nil
}

func openToRead(path string) error {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		_, err = f.Read(make([]byte, 1))
	}
	return err
}

func openToWrite(path string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func connect(path string) error {
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	return err
}

var fileEscapes = []escape{
	{"mount in the session's namespace", func(victims) error { return unix.Mount("none", "/mnt", "tmpfs", 0, "") }},
	{"read a file of root's", func(v victims) error { return openToRead(v.secret) }},
	{"write a file of root's", func(v victims) error { return openToWrite(v.public) }},
	{"make a file in /usr/bin", func(victims) error { return os.Mkdir("/usr/bin/sublet-escape", 0o700) }},
	{"make a file in the run directory", func(v victims) error { return os.WriteFile(v.run+"/x", nil, 0o600) }},
	{"see namespaces in the run directory", func(v victims) error { _, err := os.ReadDir(v.run + "/netns"); return err }},
	{"call the server", func(v victims) error { return connect(v.run + "/api.sock") }},
	{"call an agent", func(v victims) error { return connect(v.run + "/agent-h1.sock") }},
	{"call the store", func(v victims) error { return connect(v.run + "/lab/data/etcd/etcd.sock") }},
	{"call an abstract socket of a host", func(v victims) error { return connect("@" + v.abstract) }},
	{"make a disk's device", func(victims) error { return unix.Mknod("/tmp/sublet-escape", unix.S_IFBLK|0o600, 0x0800) }},
	{"open memory", func(victims) error { return errors.Join(openToRead("/dev/mem"), openToRead("/dev/kmem")) }},
	{"open a disk", func(victims) error { return errors.Join(openToRead("/dev/vda"), openToRead("/dev/sda")) }},
}

var processEscapes = []escape{
	{"see processes of the host", func(victims) error {
		all, err := filepath.Glob("/proc/[0-9]*")
		if err == nil && len(all) <= 3 { // the session's first, nsenter or what it became, and this
			err = errors.New("only its own")
		}
		return err
	}},
	{"signal the session's first process", func(victims) error { return unix.Kill(1, unix.SIGURG) }},
	{"trace the session's first process", func(victims) error { return unix.PtraceAttach(1) }},
	{"look into the session's first process", func(victims) error { return openToRead("/proc/1/environ") }},
	{"open its namespaces", func(victims) error { return openToRead("/proc/1/ns/net") }},
	{"walk through its root", func(victims) error { _, err := os.ReadDir("/proc/1/root/"); return err }},
	{"raise a hard limit", func(victims) error {
		var now unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
			return err
		}
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: now.Max + 1, Max: now.Max + 1})
	}},
	{"raise its priority", func(victims) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) }},
	{"hide from the memory killer", func(victims) error { return os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0) }},
	{"raise its control group's limits", func(victims) error { return raiseGroup() }},
}

// raiseGroup mounts control groups in a place of its own and writes there; in
// hierarchies that Sublet does not use that is another group's, perhaps all's.
func raiseGroup() error {
	return eachHierarchy(func(dir string) bool {
		return os.WriteFile(dir+"/pids.max", []byte("max"), 0) == nil || os.WriteFile(dir+"/memory.limit_in_bytes", []byte("-1"), 0) == nil ||
			os.WriteFile(dir+"/memory.max", []byte("max"), 0) == nil
	})
}

func eachHierarchy(escaped func(dir string) bool) error {
	_ = unix.Unshare(unix.CLONE_NEWCGROUP) // refused; mounts are tried all the same
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	err := errors.New("no hierarchy helps")
	for _, options := range []string{"pids", "memory", "cpu,cpuacct", "cpu", "freezer", ""} {
		kind := map[bool]string{true: "cgroup2", false: "cgroup"}[options == ""]
		if unix.Mount("none", "/mnt", kind, 0, options) != nil {
			continue
		}
		if escaped("/mnt") {
			err = nil
		}
		_ = unix.Unmount("/mnt", unix.MNT_DETACH)
	}
	return err
}

// ofRoot is what the operator's own networks allow besides, whose root is the
// machine's user 0, without its rights: that user's files, the files by which
// a control group is limited, and the session's first process.
var ofRoot = []string{"read a file of root's", "write a file of root's", "make a file in /usr/bin", "signal the session's first process", "raise its control group's limits"}

// A tenant inside their node is themselves at most, and there is no way out of it:
// to files, sockets, processes, namespaces, networks, limits or the kernel, also where
// the node has an image, as root of that or as another of its users.
func TestNoWayOutOfANode(t *testing.T) {
	t.Parallel()
	images := t.TempDir()
	l := newLab(t, "demo", "--images", images)
	c := l.tenants(alice)[0]
	l.attackImage(filepath.Join(images, "box"))
	request := strings.Replace(pair("net", "max: 100Mbit"), "links:", "  - {name: boxed, host: h1, image: box}\nlinks:\n  - {ends: [boxed, b]}", 1)
	c.up(request)
	l.up(request)
	v := l.victims()
	args := []string{"--", l.attackProgram(), insideCommand, "escape", v.run, v.host, v.secret, v.public, v.abstract}
	for who, r := range map[string]result{
		"tenant":              c.sublet(append([]string{"exec", "net/a"}, args...)...),
		"root of an image":    c.sublet(append([]string{"exec", "net/boxed"}, args...)...),
		"user of an image":    c.sublet(append([]string{"exec", "-u", "1500:1600", "net/boxed"}, args...)...),
		"operator in image":   l.sublet(append([]string{"exec", "uid12345/net/boxed"}, args...)...),
		"tenant's other user": c.sublet(append([]string{"exec", "-u", "1500:1600", "net/a"}, args...)...),
		"operator as guest":   l.sublet(append([]string{"exec", "uid12345/net/a"}, args...)...),
	} {
		if strings.Contains(who, "image") {
			r.out = strings.Replace(r.out, ofRoot[2]+"\n", "", 1) // its own, above the image
		}
		if r.code != 0 || r.out != "" {
			t.Errorf("%s: exit code %d %s, could:\n%s", who, r.code, r.err, r.out)
		}
	}
	for node, allowed := range map[string][]string{"a": ofRoot, "boxed": ofRoot[2:]} { // no file of the host's is there
		r := l.sublet(append([]string{"exec", "root/net/" + node}, args...)...)
		if r.code != 0 {
			t.Errorf("%s: exit code %d %s", node, r.code, r.err)
		}
		for what := range strings.Lines(r.out) {
			if what = strings.TrimSpace(what); !slices.Contains(allowed, what) {
				t.Errorf("the operator's own: could %s in %s", what, node)
			}
		}
	}
	for _, dir := range []string{"/usr/bin", filepath.Join(images, "box/usr/bin")} {
		if os.Remove(dir+"/sublet-escape") == nil {
			t.Errorf("somebody made a file in %s", dir)
		}
	}
	l.settled()
}

// victims makes them.
func (l *lab) victims() victims {
	l.t.Helper()
	v := victims{run: l.run, host: l.host("h1"), abstract: "sublet-escape-" + labName(l.run)}
	v.secret, v.public = l.attackProgram()+".secret", l.attackProgram()+".public" // where nodes see them
	for path, mode := range map[string]os.FileMode{v.secret: 0o600, v.public: 0o644} {
		l.t.Cleanup(func() { os.Remove(path) })
		if err := os.WriteFile(path, []byte("x"), mode); err != nil {
			l.t.Fatal(err)
		}
	}
	for _, space := range []string{here, v.host} {
		within(l.t, space, func() error {
			socket, err := net.Listen("unix", "@"+v.abstract)
			if err == nil {
				l.t.Cleanup(func() { socket.Close() })
			}
			return err
		})
	}
	return v
}

// attackImage makes a directory that is an image with this test's program, the
// libraries that it takes, and busybox.
func (l *lab) attackImage(dir string) {
	l.t.Helper()
	boxOf(l.t, dir)
	files := []string{l.attackProgram()}
	libraries, _ := exec.Command("ldd", l.attackProgram()).Output() // of one that takes none: says so
	for word := range strings.FieldsSeq(string(libraries)) {
		if filepath.IsAbs(word) {
			files = append(files, word)
		}
	}
	for _, file := range files {
		at := filepath.Join(dir, file)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if err = errors.Join(err, copyFile(file, at)); err != nil {
			l.t.Fatal(err)
		}
	}
	for _, name := range []string{"mnt", "usr/bin", "tmp", "bin"} { // where attackers try
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := os.Symlink("busybox", filepath.Join(dir, "bin/ip")); err != nil {
		l.t.Fatal(err)
	}
}
