package guest

import "testing"

// The kernel is the newest that the machine's QEMU does not crash.
func TestKernelFitsTheEmulator(t *testing.T) {
	const old, new = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)\n", "QEMU emulator version 10.0.8 (Debian)\n"
	both := []string{"/boot/vmlinuz-6.1.0-50-cloud-amd64", "/boot/vmlinuz-6.12.95+deb12-cloud-amd64", "/boot/vmlinuz-6.8.0-cloud-amd64"}
	for _, c := range []struct {
		images []string
		qemu   string
		want   string
	}{
		{both, old, "6.8.0-cloud-amd64"},
		{both, new, "6.12.95+deb12-cloud-amd64"},
		{both[:1], new, "6.1.0-50-cloud-amd64"},
		{both[1:2], old, ""},
		{both[1:2], "no version", ""},
	} {
		if got := fitting(c.images, c.qemu); got != c.want {
			t.Errorf("%q of %v takes %q, want %q", c.qemu, c.images, got, c.want)
		}
	}
}
