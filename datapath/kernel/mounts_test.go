package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMounts(t *testing.T) {
	table := filepath.Join(t.TempDir(), "mountinfo")
	text := `22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw
35 30 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:15 master:3 - cgroup cgroup rw,cpu,cpuacct
36 35 98:0 /mnt1\040a /tmp/with\040blank\134n rw,noatime - ext3 /dev/root rw,errors=continue
400 28 0:4 net:[4026532000] /run/sublet/netns/h1/a rw shared:1 - nsfs nsfs rw
401 28 0:5 / /srv rw - tmpfs  rw,size=1k
a line that is none
`
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Mounts(table)
	want := []Mount{
		{"/", "/sys", "sysfs", "rw"},
		{"/", "/sys/fs/cgroup/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct"},
		{"/mnt1 a", `/tmp/with blank\n`, "ext3", "rw,errors=continue"},
		{"net:[4026532000]", "/run/sublet/netns/h1/a", "nsfs", "rw"},
		{"/", "/srv", "tmpfs", "rw,size=1k"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for path, within := range map[string]bool{"/run/sublet/netns/h1/a": true, "/run/sublet": true, "/run/sub": false, "/run/sublet/netns/h1/a/b": false} {
		if got[3].Within(path) != within {
			t.Errorf("%s within %s: %v", got[3].Point, path, !within)
		}
	}
	if _, err := Mounts(table + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a table that is not there: ", err)
	}
	if own, err := Mounts(OwnMounts); err != nil || !slices.ContainsFunc(own, func(m Mount) bool { return m.Point == "/proc" && m.Type == "proc" }) {
		t.Errorf("this process's mounts: %v, %v", own, err)
	}
}
