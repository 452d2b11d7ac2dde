package test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	product "sublet/lab"
)

// A lab whose host h2 has an exit with two VLANs. The host has an address of its
// own on that interface.
//
//	h1 --1G-- h2 [lan0 192.0.2.2] ==veth== [h2-lan0 192.0.2.1] outside [vlan100 10.50.0.9]
const accessSubstrate = `hosts:
  - {name: h1, cpu: 4, memory: 4GiB}
  - {name: h2, cpu: 4, memory: 4GiB}
links:
  - {ends: [h1, h2], capacity: 1Gbit}
exits:
  - {name: campus, host: h2, interface: lan0, vlan: 100-101, capacity: 50Mbit}
`

func accessRequest(network, rate, vlan string) string {
	return fmt.Sprintf(`network: %s
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
switches:
  - {name: lan, access: campus%s}
links:
  - {ends: [{node: a, address: 10.50.0.1/24}, lan], rate: %s}
  - {ends: [{node: b, address: 10.50.0.2/24}, lan], rate: %s}
`, network, vlan, rate, rate)
}

// A network with access to an exit is one network of layer 2 with a VLAN outside,
// within its rates; other VLANs, the host and frames without a tag are apart from
// it. It goes on without its agent, is mended, and leaves the host as it was.
func TestAccess(t *testing.T) {
	s := newSupervisor(t, accessSubstrate)
	outside := product.OutsideNamespace(labName(s.run))
	addressed(t, s.host("h2"), "lan0", "192.0.2.2/24")
	addressed(t, outside, "h2-lan0", "192.0.2.1/24")
	s.station(outside, 100, netip.MustParsePrefix("10.50.0.9/24"))
	greets(t, outside, 80)
	greets(t, s.host("h2"), 7777)
	s.up(accessRequest("lan", "10Mbit", ", vlan: 100"))
	s.up(accessRequest("other", "10Mbit", ""))
	s.settled()

	for _, node := range []string{"lan/a", "lan/b"} {
		if got, ok := s.heard(node, "10.50.0.9", 80); !ok || !strings.HasPrefix(got, "10.50.0.") {
			t.Errorf("%s is not on the VLAN: %q", node, got)
		}
	}
	for what, c := range map[string]struct{ node, address string }{
		"a VLAN of another lease": {"other/a", "10.50.0.9"}, "the host": {"lan/b", "192.0.2.2"}, "the untagged outside": {"lan/b", "192.0.2.1"},
	} {
		if got, ok := s.heard(c.node, c.address, map[bool]int{true: 7777, false: 80}[c.address == "192.0.2.2"]); ok {
			t.Errorf("%s was reached, and said %q", what, got)
		}
	}
	s.accessRates(outside)
	s.refusesAccess()
	s.ownTraffic()

	s.kill(agentOf("h2"))
	if _, ok := s.heard("lan/a", "10.50.0.9", 80); !ok {
		t.Error("the exit is gone with the agent")
	}
	within(t, s.host("h2"), func() error { return exec.Command("ip", "link", "set", "lan0", "promisc", "off").Run() })
	within(t, filepath.Join(s.run, "netns", "h2", "root.lan.lan.switch"), func() error { return exec.Command("ip", "link", "del", "eth2").Run() })
	s.start(agentOf("h2"))
	eventually(t, 20*time.Second, func() error {
		if _, ok := s.heard("lan/a", "10.50.0.9", 80); !ok {
			return errors.New("outside is not reached")
		}
		return nil
	})
	s.must("down", "lan")
	s.must("down", "other")
	s.settled()
	s.ownTraffic()
	within(t, s.host("h2"), func() error {
		out, err := exec.Command("ip", "-d", "link").Output()
		if strings.Contains(string(out), " sx") || strings.Contains(string(out), "PROMISC") {
			t.Errorf("left on the host:\n%s", out)
		}
		return err
	})
	if left := matches(filepath.Join(s.run, "access", "h2", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// ownTraffic sees whether the host's own frames on the interface come and go.
func (s *supervisor) ownTraffic() {
	s.t.Helper()
	within(s.t, s.host("h2"), func() error {
		if out, err := exec.Command("ping", "-c", "3", "-i", "0.1", "-W", "1", "192.0.2.1").CombinedOutput(); err != nil {
			s.t.Errorf("the host's own traffic: %s", out)
		}
		return nil
	})
}

// accessRates sends for longer than a rate allows, out and in.
func (s *supervisor) accessRates(outside string) {
	s.t.Helper()
	const bytes, least = 2_500_000, 1600 * time.Millisecond // 2 s at 10 Mbit/s
	began := time.Now()
	s.must("exec", "lan/a", "--", "python3", "-c", fmt.Sprintf(`
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536); s.connect(("10.50.0.9", 80)); s.sendall(bytes(%d))`, bytes))
	if took := time.Since(began); took < least {
		s.t.Errorf("out: %d bytes in %s at 10 Mbit/s", bytes, took)
	}
	greets(s.t, filepath.Join(s.run, "netns", "h1", "root.lan.a"), 81)
	began = time.Now()
	within(s.t, outside, func() error {
		c, err := net.DialTimeout("tcp4", "10.50.0.1:81", 2*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.(*net.TCPConn).SetWriteBuffer(64 << 10); err != nil {
			return err
		}
		_, err = c.Write(make([]byte, bytes))
		return err
	})
	if took := time.Since(began); took < least {
		s.t.Errorf("in: %d bytes in %s at 10 Mbit/s", bytes, took)
	}
}

// refusesAccess asks for more than the exit has.
func (s *supervisor) refusesAccess() {
	s.t.Helper()
	for what, c := range map[string]struct{ text, says string }{
		"a third VLAN":           {accessRequest("third", "1Mbit", ""), "exit campus is taken in this window: it has VLANs 100-101"},
		"a VLAN that is taken":   {accessRequest("same", "1Mbit", ", vlan: 100"), "VLAN 100 of exit campus is taken"},
		"a VLAN out of range":    {accessRequest("beyond", "1Mbit", ", vlan: 7"), "exit campus has VLANs 100-101, not VLAN 7"},
		"more than the capacity": {accessRequest("large", "20Mbit", ""), "exit campus has 10Mbit of 50Mbit free"},
		"an unknown exit":        {strings.Replace(accessRequest("none", "1Mbit", ""), "campus", "beach", 1), `no exit "beach"`},
	} {
		r := s.sublet("up", s.file("refused.yaml", c.text))
		if r.code != 3 || !strings.Contains(r.out+r.err, c.says) {
			s.t.Errorf("%s: exit code %d\n%s%s", what, r.code, r.out, r.err)
		}
	}
}

// station puts a station of a VLAN outside, by a TAP device: this machine's kernel
// may have no devices for VLANs.
func (l *lab) station(namespace string, vlan uint16, address netip.Prefix) {
	l.t.Helper()
	within(l.t, l.host("h2"), func() error { // the station sees no sums that a device would make
		return exec.Command("ethtool", "-K", "lan0", "tx", "off").Run()
	})
	device := fmt.Sprintf("vlan%d", vlan)
	var tap *os.File
	var wire int
	within(l.t, namespace, func() (err error) {
		if tap, err = openTAP(device); err != nil {
			return err
		}
		wire, err = openWire("h2-lan0")
		return err
	})
	addressed(l.t, namespace, device, address.String())
	l.t.Cleanup(func() { tap.Close(); unix.Close(wire) })
	go func() { // out of the VLAN
		b, oob := make([]byte, 2000), make([]byte, 200)
		for {
			n, oobn, _, _, err := unix.Recvmsg(wire, b, oob, 0)
			if err != nil && err != unix.EINTR {
				return
			}
			if tagOf(oob[:oobn]) == int(vlan) {
				_, _ = tap.Write(b[:n])
			}
		}
	}()
	go func() { // into it
		b := make([]byte, 2000)
		for {
			n, err := tap.Read(b)
			if err != nil {
				return
			}
			tagged := append(append([]byte{}, b[:12]...), 0x81, 0, byte(vlan>>8), byte(vlan))
			_, _ = unix.Write(wire, append(tagged, b[12:n]...))
		}
	}()
}

func openTAP(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openWire reads and writes a device's frames.
func openWire(device string) (int, error) {
	const every = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, every)
	if err != nil {
		return 0, err
	}
	c, err := kernel.Dial()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	l, err := c.LinkByName(device)
	return fd, errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1), unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: every, Ifindex: l.Index}))
}

// tagOf is the identifier of the tag that a frame had; -1: none.
func tagOf(control []byte) int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return -1
	}
	for _, m := range messages {
		if m.Header.Type == unix.PACKET_AUXDATA && len(m.Data) >= int(unsafe.Sizeof(unix.TpacketAuxdata{})) {
			if aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0])); aux.Status&unix.TP_STATUS_VLAN_VALID != 0 {
				return int(aux.Vlan_tci)
			}
		}
	}
	return -1
}
