package test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var trapped = map[int]string{
	unix.SYS_MOUNT: "mount", unix.SYS_UMOUNT2: "umount", unix.SYS_MKDIRAT: "mkdir", unix.SYS_MKDIR: "mkdir",
	unix.SYS_UNLINKAT: "unlink", unix.SYS_RMDIR: "rmdir", unix.SYS_RENAMEAT: "rename", unix.SYS_RENAMEAT2: "rename",
	unix.SYS_UNSHARE: "unshare", unix.SYS_OPENAT: "create", unix.SYS_SENDTO: "netlink",
	unix.SYS_RECVFROM: "answer",
}

func (n notification) describe() syscallInfo {
	s := syscallInfo{name: trapped[int(n.number)], fd: n.arguments[0]}
	switch n.number {
	case unix.SYS_SENDTO:
		s.text, s.read = describeNetlink(n.memory(n.arguments[1], int(min(n.arguments[2], 4096))))
	case unix.SYS_MOUNT, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_OPENAT:
		s.text = n.string(n.arguments[1])
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		s.text = n.string(n.arguments[3])
	case unix.SYS_UMOUNT2, unix.SYS_RMDIR, unix.SYS_MKDIR:
		s.text = n.string(n.arguments[0])
	}
	return s
}

// isNetlink says that a message is a request by netlink: with an address of its
// kind, or, without any, with such a header (RFC 3549, section 2.2).
func (n notification) isNetlink() bool {
	if n.arguments[5] != 0 {
		return true
	}
	b := n.memory(n.arguments[1], unix.NLMSG_HDRLEN)
	if uint64(len(b)) < unix.NLMSG_HDRLEN || n.arguments[2] < unix.NLMSG_HDRLEN {
		return false
	}
	size, flags := uint64(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint16(b[6:])
	return size >= unix.NLMSG_HDRLEN && size <= n.arguments[2] && flags&unix.NLM_F_REQUEST != 0
}

// memory reads from the process; short or nothing if it cannot.
func (n notification) memory(address uint64, size int) []byte {
	buffer := make([]byte, size)
	local := []unix.Iovec{{Base: &buffer[0]}}
	local[0].SetLen(size)
	got, err := unix.ProcessVMReadv(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(address), Len: size}}, 0)
	if err != nil {
		return nil
	}
	return buffer[:got]
}

// string reads a path; it may end at the end of a page.
func (n notification) string(address uint64) string {
	const page = 4096
	text := n.memory(address, int(page-address%page))
	if len(text) < 256 {
		text = append(text, n.memory(address+uint64(len(text)), page)...)
	}
	s, _, _ := strings.Cut(string(text), "\x00")
	return s
}

var netlinkNames = []string{"new", "del", "get", "set"}
var netlinkKinds = map[uint16]string{
	16: "link", 20: "address", 24: "route", 28: "neighbour", 32: "rule",
	36: "qdisc", 40: "class", 44: "filter", 88: "nsid",
}

// describeNetlink tells what a request is: RTM_* types come in fours.
func describeNetlink(b []byte) (text string, read bool) {
	if len(b) < 16 {
		return "unreadable", false
	}
	kind := binary.NativeEndian.Uint16(b[4:])
	what, known := netlinkKinds[kind&^3]
	if !known {
		what = fmt.Sprint(kind &^ 3)
	}
	index := uint32(0)
	if len(b) >= 24 {
		index = binary.NativeEndian.Uint32(b[20:])
	}
	name := ""
	if kind&^3 == 16 && len(b) > 36 && binary.NativeEndian.Uint16(b[34:]) == unix.IFLA_IFNAME {
		name, _, _ = strings.Cut(string(b[36:min(len(b), 52)]), "\x00")
	}
	text = fmt.Sprintf("%s %s %s#%d", netlinkNames[kind&3], what, name, index)
	for size := int(binary.NativeEndian.Uint32(b)+3) &^ 3; size < len(b) && size > 0; {
		more, _ := describeNetlink(b[size:])
		return text + ", " + more, false
	}
	return text, kind&3 == 2
}

// The trap itself: no call is missed, of a child either; failing and killing work.
func TestTrap(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("seccomp filters take root")
	}
	dir := t.TempDir()
	script := "mkdir " + dir + "/a; mkdir " + dir + "/b; echo $?; mkdir " + dir + "/c; echo never"
	cmd := exec.Command("/bin/sh", "-c", script)
	var out strings.Builder
	cmd.Stdout = &out
	third := make(chan struct{})
	tr := startTrapped(t, cmd, false, func(c *exec.Cmd) error { return c.Start() })
	var seen []string
	tr.on(func(s syscallInfo) verdict {
		if s.name == "mkdir" {
			seen = append(seen, s.text)
		}
		switch s.text {
		case dir + "/b":
			return verdict{fail: unix.ENOSPC}
		case dir + "/c":
			close(third)
			return verdict{kill: true}
		}
		return pass
	})
	select {
	case <-third:
	case <-time.After(10 * time.Second):
		t.Error("never got to the third call")
	}
	tr.kill()
	tr.on(nil)
	if got := strings.Join(seen, " "); got != dir+"/a "+dir+"/b "+dir+"/c" || out.String() != "1\n" {
		t.Errorf("saw %q, output %q", got, out.String())
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": true} { // c: by the child that lived on
		if _, err := os.Stat(dir + "/" + name); (err == nil) != want {
			t.Errorf("directory %s: %v", name, err)
		}
	}
}
