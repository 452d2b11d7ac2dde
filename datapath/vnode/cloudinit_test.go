package vnode

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sublet/vnet"
)

// cloudInit is where tools/install-deps unpacks Debian's cloud-init.
const cloudInit = "/var/lib/sublet-test/cloud-init"

// booted goes through the stages of a machine's first start, in namespaces of its own
// and on a layer above this machine's files. What brings up networks there does no
// more than the addresses that cloud-init wrote for it.
const booted = `set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/up" "$1/work" "$1/root"
cp -a "$2/." "$1/up/"
if [ -d "$1/up/lib" ]; then cp -a "$1/up/lib/." "$1/up/usr/lib/"; rm -rf "$1/up/lib"; fi
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount -t sysfs sysfs "$1/root/sys"
mount -t tmpfs tmpfs "$1/root/run"
mount --rbind /dev "$1/root/dev"
mkdir -p "$1/root/var/lib/cloud/seed/nocloud"
cp "$3"/* "$1/root/var/lib/cloud/seed/nocloud/"
cat >"$1/root/etc/cloud/cloud.cfg.d/99-test.cfg" <<-END
	datasource_list: [NoCloud, None]
	locale: false
	ssh_genkeytypes: []
	system_info: {network: {renderers: [networkd]}}
END
ip link set lo up
for i in 0 1; do
	ip link add was$i address 02:ab:00:00:00:0$((i+1)) type veth peer name peer$i
	ip link set peer$i up
done
chroot "$1/root" cloud-init init --local
for i in 0 1; do
	ip link set eth$i up
	sed -n 's/^Address=//p' "$1/root/etc/systemd/network/10-cloud-init-eth$i.network" | while read -r a; do ip address add "$a" dev eth$i; done
done
chroot "$1/root" cloud-init init
chroot "$1/root" cloud-init modules --mode=config
chroot "$1/root" cloud-init modules --mode=final
chroot "$1/root" sh -c "$4"
`

// Cloud-init itself takes from a seed the name, files, variables, settings, programs,
// interfaces, addresses and routes.
func TestSoakCloudInit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("to make namespaces takes root")
	}
	if _, err := os.Stat(cloudInit); err != nil {
		t.Skip("cloud-init is not there: tools/install-deps unpacks it")
	}
	s := seedOf("m1", vnet.Setup{
		Env:     map[string]string{"A": "it's\n$x"},
		Workdir: "/srv/new",
		Sysctls: map[string]string{"net.ipv4.tcp_ecn": "1", "net.ipv4.conf.eth1.rp_filter": "2"},
		Files:   []vnet.File{{Path: "/etc/x", Text: "grüße\n"}, {Path: "/etc/y", Text: "#cloud-config\n", Mode: "0600", Owner: "daemon"}},
		Run:     []vnet.Program{{Cmd: []string{"sh", "-c", `printf '%s in %s' "$A" "$PWD" >/ran`}}, {Cmd: []string{"touch", "$A;x"}}},
	}, twoCards(), "10.0.0.1 m1\n10.0.0.2 n2\n")
	dir, from := t.TempDir(), t.TempDir()
	for name, text := range map[string][]byte{"meta-data": s.MetaData, "user-data": s.UserData, "network-config": s.NetworkConfig} {
		check(t, os.WriteFile(filepath.Join(from, name), text, 0o600))
	}
	const report = `echo; echo "== status"; cloud-init status
echo "== name"; hostname
echo "== files"; cat /etc/x; stat -c '%a %U' /etc/y; tail -n 2 /etc/hosts
echo "== settings"; cat /proc/sys/net/ipv4/tcp_ecn /proc/sys/net/ipv4/conf/eth1/rp_filter
echo "== ran"; cat /ran; echo; ls /srv/new
echo "== addresses"; ip -o -br address show dev eth0 scope global; ip -o -br address show dev eth1 scope global
echo "== link"; ip -o -br link show dev eth0 | cut -c -60
echo "== routes"; ip route show dev eth0
echo "== network"; cat /etc/systemd/network/10-cloud-init-eth0.network`
	out, err := exec.Command("unshare", "--mount", "--net", "--uts", "--pid", "--fork", "sh", "-c", booted, "sh", dir, cloudInit, from, report).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, said, _ := strings.Cut(string(out), "\n== ")
	for _, want := range []string{
		"status\nstatus: done\n",
		"name\nm1\n",
		"files\ngrüße\n600 daemon\n10.0.0.1 m1\n10.0.0.2 n2\n",
		"settings\n1\n2\n",
		"ran\nit's\n$x in /srv/new\n$A;x\n",
		"10.0.0.1/32", "192.168.1.7/24", "2001:db8::7/64",
		"02:ab:00:00:00:01",
		"routes\n10.0.0.2 scope link \n10.0.0.3 via 10.0.0.2 onlink \n10.0.0.4 scope link \n",
		"MTUBytes=1400", "MACAddress=02:ab:00:00:00:01", "Destination=10.0.0.2/32", "Destination=10.0.0.3/32", "Gateway=10.0.0.2\n", // on-link is lost there: the seed sets routes again
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in what the machine says:\n%s", want, said)
		}
	}
}
