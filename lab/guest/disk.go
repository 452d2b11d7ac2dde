package guest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// kernels are the directories that may have Debian's cloud kernels: the machine's,
// and where tools/install-deps unpacks one.
var kernels = []string{"/", "/var/lib/sublet-test/kernel"}

// diskModules are what a machine with a disk, a card and a seed needs, and a bridge. Which of them
// needs which other one is not the same in all kernels.
var diskModules = []string{
	"drivers/virtio/virtio", "drivers/virtio/virtio_ring", "drivers/virtio/virtio_pci_modern_dev", "drivers/virtio/virtio_pci_legacy_dev",
	"drivers/virtio/virtio_pci", "drivers/block/virtio_blk", "net/core/failover", "drivers/net/net_failover", "drivers/net/virtio_net",
	"drivers/cdrom/cdrom", "fs/isofs/isofs", "net/llc/llc", "net/802/stp", "net/bridge/bridge",
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

// Disk makes the disk of a small machine, as MakeDisk does. Where there is nothing to
// make it of it skips the test.
func Disk(t testing.TB, path string) {
	t.Helper()
	var lacks *LackError
	if err := MakeDisk(path); errors.As(err, &lacks) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// LackError says what a disk cannot be made without.
type LackError struct{ What string }

func (e *LackError) Error() string {
	return e.What + ": tools/install-deps installs what there is of it"
}

// MakeDisk makes the disk of a small machine, in the format raw: it boots by itself,
// takes its network out of the seed of its second disk, and runs each line that
// comes by its serial line. It has programs of this machine in /bin, with their
// libraries. Where there is nothing to make it of the error is a *LackError.
func MakeDisk(path string, programs ...string) error {
	for _, program := range []string{"qemu-system-x86_64", "qemu-img", "busybox", "syslinux", "mcopy", "mformat"} {
		if _, err := exec.LookPath(program); err != nil {
			return &LackError{program + " is not installed"}
		}
	}
	kernel, modules := cloudKernel()
	if kernel == "" {
		return &LackError{"no Debian cloud kernel before 6.12"}
	}
	packed, err := diskInitramfs(modules, programs)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "disk")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	initrd, config := filepath.Join(dir, "initrd"), filepath.Join(dir, "syslinux.cfg")
	const size = 40 << 20
	err = errors.Join(
		os.WriteFile(initrd, packed, 0o644), os.WriteFile(config, []byte(boot), 0o644),
		os.WriteFile(path, nil, 0o644), os.Truncate(path, size),
	)
	for _, argv := range [][]string{
		{"mformat", "-i", path, "-h", "64", "-s", "32", "-T", "81920", "::"},
		{"mcopy", "-i", path, kernel, "::vmlinuz"},
		{"mcopy", "-i", path, initrd, config, "::"},
		{"syslinux", "--install", path},
	} {
		if err != nil {
			return err
		}
		var out []byte
		if out, err = exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			err = fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
		}
	}
	return err
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

func diskInitramfs(modules string, programs []string) ([]byte, error) {
	var a archive
	for _, dir := range []string{"bin", "dev", "proc", "sys", "seed", "modules", "tmp", "lib", "lib64", "lib/x86_64-linux-gnu"} {
		a.add(dir, 0o40755, nil)
	}
	if err := a.program("busybox"); err != nil {
		return nil, err
	}
	for _, name := range programs {
		if err := a.program(name); err != nil {
			return nil, err
		}
	}
	for i, name := range diskModules {
		err := a.copy("modules/"+string(rune('a'+i))+".ko", filepath.Join(modules, name+".ko"))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // part of the kernel
			return nil, err
		}
	}
	a.add("init", 0o100755, []byte(seeded))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(a.end()); err != nil {
		return nil, err
	}
	err := w.Close()
	return packed.Bytes(), err
}
