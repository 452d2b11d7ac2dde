package test

import (
	"encoding/binary"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// injectInside sends a signed frame in VXLAN packets of a network: VNI, source
// port, user whose signature it is, and who gets it.
func injectInside(args []string) error {
	vni, err := strconv.ParseUint(args[0], 10, 24)
	if err != nil {
		return err
	}
	uid, err := strconv.ParseUint(args[2], 10, 16)
	if err != nil {
		return err
	}
	conn, err := net.ListenPacket("udp4", ":"+args[1])
	if err != nil {
		return err
	}
	defer conn.Close()
	mark := signed(uint32(uid), 9)
	packet := binary.BigEndian.AppendUint32([]byte{8, 0, 0, 0}, uint32(vni)<<8)
	packet = append(packet, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 0x88, 0xb5)
	packet = append(append(packet, make([]byte, 60)...), mark[:]...)
	sent := 0
	for _, target := range args[3:] {
		to, err := net.ResolveUDPAddr("udp4", target+":4789")
		if err != nil {
			return err
		}
		for range 20 {
			if _, err := conn.WriteTo(packet, to); err == nil {
				sent++
			}
		}
	}
	fmt.Println(sent)
	return nil
}

// onHost runs one of insides in a lab host's own network as a user.
func (l *lab) onHost(host string, uid int, args ...string) result {
	l.t.Helper()
	as := []string{"--net=" + l.host(host), "--setuid", fmt.Sprint(uid), "--setgid", fmt.Sprint(uid), "--", l.attackProgram(), insideCommand}
	return runCommand(exec.Command("nsenter", append(as, args...)...))
}

// Below the tunnels: a user of a host who knows everything about another's
// network but is not root, and a machine of the substrate that is not the
// network's own and does not forge its address, get nothing into it. Root of
// the peer host does, which shows that the packets are right, into that link
// only.
//
//	h1 ==== tunnel of each tenant ==== h2
//	 ^                               ^
//	 |  a user of h1, not root: no   |  h3 on the same switch: no
//	                                 |  root of h1, h2's peer: into that link only
func TestNothingEntersATunnelFromBeside(t *testing.T) {
	t.Parallel()
	l := newLab(t, threeHosts)
	both := l.tenants(alice, bob)
	for _, c := range both {
		c.up(sameNetwork)
	}
	victim := both[1]
	vni := fmt.Sprint(victim.vni("h1"))
	var underlay []string
	for _, host := range []string{"h1", "h2", "h3"} {
		p := floodPlan{}
		within(t, l.host(host), p.learn)
		for _, ip := range p.IPs {
			underlay = append(underlay, net.IP(ip[:]).String())
		}
	}
	var silent []*wiretap
	for node, host := range places {
		silent = append(silent, tap(t, victim.node(host, "net", node), "forged frames at "+victim.name()+"/"+node, from(alice)))
		silent = append(silent, tap(t, both[0].node(host, "net", node), "forged frames at "+both[0].name()+"/"+node, anything()))
	}
	for _, sender := range []struct {
		host string
		uid  int
		port string
	}{
		{"h1", alice, "0"}, {"h2", alice, "0"}, {"h3", alice, "0"}, {"h1", alice, "1024"}, {"h1", bob, "0"},
		{"h3", 0, "0"}, {"h3", 0, "600"}, {"s1", 0, "600"},
	} {
		r := l.onHost(sender.host, sender.uid, append([]string{"inject", vni, sender.port, fmt.Sprint(alice)}, underlay...)...)
		if n, _ := strconv.Atoi(strings.TrimSpace(r.out)); r.code != 0 || n == 0 {
			t.Errorf("%v sent nothing: %s", sender, r.err)
		}
	}
	if r := l.onHost("h1", alice, "inject", vni, "600", fmt.Sprint(alice), underlay[0]); r.code == 0 {
		t.Error("a user got a port of root's")
	}
	for _, w := range silent {
		w.silent()
	}
	arrive := tap(t, victim.node("h2", "net", "b"), "b", exactly(signed(bob, 9)))
	var beside []*wiretap
	for _, node := range []string{"a", "c"} {
		beside = append(beside, tap(t, victim.node("h1", "net", node), "root's frames at "+victim.name()+"/"+node, from(bob)))
	}
	for _, c := range both[:1] {
		for node, host := range places {
			beside = append(beside, tap(t, c.node(host, "net", node), "root's frames at "+c.name()+"/"+node, from(bob)))
		}
	}
	peer := floodPlan{}
	within(t, l.host("h2"), peer.learn)
	for _, ip := range peer.IPs {
		l.onHost("h1", 0, "inject", vni, "600", fmt.Sprint(bob), net.IP(ip[:]).String())
	}
	if arrive.count() == 0 {
		t.Error("root's frames did not arrive: the test shows nothing")
	}
	for _, w := range beside {
		w.silent()
	}
	if r := victim.shell("net/a", "ping -qc1 -W2 b"); r.code != 0 {
		t.Errorf("own peer does not answer: %s", r.out)
	}
}
