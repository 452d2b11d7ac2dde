package kernel

import (
	"os"
	"path/filepath"
	"testing"
)

// What can be loaded is known without loading it.
func TestModulesAreFoundWithoutLoadingThem(t *testing.T) {
	dir := t.TempDir()
	index := "kernel/net/sched/sch_htb.ko.xz:\nkernel/drivers/net/vxlan/vxlan.ko: kernel/net/ipv4/udp_tunnel.ko\nkernel/a/dashed-name.ko.zst:\n"
	if err := os.WriteFile(filepath.Join(dir, "modules.dep"), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	for module, want := range map[string]bool{"sch_htb": true, "vxlan": true, "dashed_name": true, "udp_tunnel": false, "sch": false, "geneve": false} {
		if got := isModule(dir, module); got != want {
			t.Errorf("%s: %t", module, got)
		}
	}
	if isModule(filepath.Join(dir, "none"), "vxlan") {
		t.Error("a kernel without an index has modules")
	}
}

// Asking what a machine can do loads no module.
func TestFeaturesLoadNoModule(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	before, err := filepath.Glob("/sys/module/*")
	if err != nil {
		t.Fatal(err)
	}
	Features()
	after, err := filepath.Glob("/sys/module/*")
	if err != nil || len(after) != len(before) {
		t.Errorf("%d modules became %d: %v", len(before), len(after), err)
	}
	for _, f := range Features() {
		for _, kind := range []string{"gre", "ipip", "geneve", "vrf"} {
			if f.Name == "device "+kind {
				t.Errorf("%s is tried, whose module makes devices in every namespace", kind)
			}
		}
	}
}
