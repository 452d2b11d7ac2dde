package guest

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// kernels are the directories that may have Debian's cloud kernels: the machine's,
// and where tools/install-deps unpacks one.
var kernels = []string{"/", "/var/lib/sublet-test/kernel"}

// diskModules are what a machine with a disk, a card and a seed needs. Which of them
// needs which other one is not the same in all kernels.
var diskModules = []string{
	"drivers/virtio/virtio", "drivers/virtio/virtio_ring", "drivers/virtio/virtio_pci_modern_dev", "drivers/virtio/virtio_pci_legacy_dev",
	"drivers/virtio/virtio_pci", "drivers/block/virtio_blk", "net/core/failover", "drivers/net/net_failover", "drivers/net/virtio_net",
	"drivers/cdrom/cdrom", "fs/isofs/isofs",
}

// seeded is what such a machine does: it takes its addresses and routes out of the
// seed, as much of cloud-init as its test needs, and serves its serial line.
const seeded = `#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs d /dev; mount -t proc p /proc; mount -t sysfs s /sys
for again in 1 2 3; do for m in /modules/*; do insmod $m 2>/dev/null; done; done
mount -t iso9660 -o ro /dev/vdb /seed
ip link set lo up
for dev in $(ls /sys/class/net | grep eth); do ip link set $dev up; done
awk '/"addresses"/{f=1;next} /\]/{f=0} f{gsub(/[", ]/,"");print}' /seed/network-config | while read a; do ip addr add $a dev eth0; done
awk '/"to"/{gsub(/[", ]/,"");sub("to:","");if(to)print to;to=$0} /"via"/{gsub(/[", ]/,"");sub("via:","");to=to" via "$0" onlink"} END{if(to)print to}' /seed/network-config |
	while read r; do ip route add $r dev eth0; done
exec </dev/ttyS0 >/dev/ttyS0 2>&1
stty -echo
echo machine login:
while read -r line; do eval "$line"; echo "done:$?:"; done
`

// boot is what SYSLINUX starts.
const boot = "SERIAL 0 115200\nDEFAULT linux\nPROMPT 0\nLABEL linux\nKERNEL vmlinuz\nINITRD initrd\nAPPEND console=ttyS0 panic=-1 quiet\n"

// Disk makes the disk of a small machine, in the format raw: it boots by itself,
// takes its network out of the seed of its second disk, and runs each line that
// comes by its serial line. Where there is nothing to make it of it skips the test.
func Disk(t testing.TB, path string) {
	t.Helper()
	for _, program := range []string{"qemu-system-x86_64", "qemu-img", "busybox", "syslinux", "mcopy", "mformat"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: tools/install-deps installs it", program)
		}
	}
	kernel, modules := cloudKernel()
	if kernel == "" {
		t.Skip("no Debian cloud kernel before 6.12: tools/install-deps unpacks one")
	}
	dir := t.TempDir()
	initrd, config := filepath.Join(dir, "initrd"), filepath.Join(dir, "syslinux.cfg")
	must(t, os.WriteFile(initrd, diskInitramfs(t, modules), 0o644))
	must(t, os.WriteFile(config, []byte(boot), 0o644))
	const size = 40 << 20
	must(t, os.WriteFile(path, nil, 0o644))
	must(t, os.Truncate(path, size))
	for _, argv := range [][]string{
		{"mformat", "-i", path, "-h", "64", "-s", "32", "-T", "81920", "::"},
		{"mcopy", "-i", path, kernel, "::vmlinuz"},
		{"mcopy", "-i", path, initrd, config, "::"},
		{"syslinux", "--install", path},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", strings.Join(argv, " "), err, out)
		}
	}
}

// cloudKernel is the image of a kernel, and the directory of its modules; "": there
// is none that an old QEMU boots in software.
func cloudKernel() (image, modules string) {
	for _, root := range kernels {
		images, _ := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*-cloud-amd64"))
		release := fitting(images, "")
		if release != "" {
			return filepath.Join(root, "boot/vmlinuz-"+release), filepath.Join(root, "lib/modules", release, "kernel")
		}
	}
	return "", ""
}

func diskInitramfs(t testing.TB, modules string) []byte {
	t.Helper()
	var a archive
	for _, dir := range []string{"bin", "dev", "proc", "sys", "seed", "modules"} {
		a.add(dir, 0o40755, nil)
	}
	busybox, _ := exec.LookPath("busybox")
	a.copy(t, "bin/busybox", busybox)
	for i, name := range diskModules {
		from := filepath.Join(modules, name+".ko")
		if _, err := os.Stat(from); os.IsNotExist(err) {
			continue // part of the kernel
		}
		a.copy(t, "modules/"+string(rune('a'+i))+".ko", from)
	}
	a.add("init", 0o100755, []byte(seeded))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(a.end())
	must(t, err)
	must(t, w.Close())
	return packed.Bytes()
}
