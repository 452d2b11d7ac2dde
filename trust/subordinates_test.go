package trust

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSubordinateUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subuid")
	text := "daemon:165536:65536\n# no line\n2:300000:10\nroot:500000:3\nnobody-here:400000:5\nbin:x:9\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	SetSubordinates(path)
	t.Cleanup(func() { SetSubordinates("/etc/subuid") })
	for uid, want := range map[uint32]uint32{1: 1, 165535: 165535, 165536: 1, 231071: 1, 231072: 231072, 300009: 2, 300010: 300010, 400000: 400000, 500000: 500000, 500002: 500000} {
		if got := subordinates.owner(uid); got != want {
			t.Errorf("user %d belongs to %d, not %d", uid, got, want)
		}
	}
	if m := MemberOf("uid165540"); m.Name != "daemon" || m.UID != 1 || !slices.Contains(m.Groups, "daemon") {
		t.Errorf("uid165540 is charged to %+v", m)
	}
}
