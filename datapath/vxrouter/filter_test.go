package vxrouter

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// nft sends one message of nftables in a batch, as nft(8) would.
func nft(kind uint16, flags uint16, attributes []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	message := func(kind, flags uint16, body []byte) []byte {
		b := make([]byte, unix.NLMSG_HDRLEN)
		binary.NativeEndian.PutUint32(b, uint32(len(b)+len(body)))
		binary.NativeEndian.PutUint16(b[4:], kind)
		binary.NativeEndian.PutUint16(b[6:], flags|unix.NLM_F_REQUEST)
		return append(b, body...)
	}
	const subsystem = unix.NFNL_SUBSYS_NFTABLES << 8
	batch := []byte{0, 0, 0, unix.NFNL_SUBSYS_NFTABLES} // struct nfgenmsg
	out := slices.Concat(
		message(unix.NFNL_MSG_BATCH_BEGIN, 0, batch),
		message(subsystem|kind, flags|unix.NLM_F_ACK, append([]byte{unix.NFPROTO_IPV4, 0, 0, 0}, attributes...)),
		message(unix.NFNL_MSG_BATCH_END, 0, batch))
	if err := unix.Sendto(fd, out, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err == nil && n >= unix.NLMSG_HDRLEN+4 {
		if code := int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); code != 0 {
			err = unix.Errno(-code)
		}
	}
	return err
}

// attributes are those of a netlink message, with strings as values.
func attributes(pairs ...any) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		value, ok := pairs[i+1].([]byte)
		if !ok {
			value = append([]byte(pairs[i+1].(string)), 0)
		}
		b = binary.NativeEndian.AppendUint16(b, uint16(len(value)+4))
		b = binary.NativeEndian.AppendUint16(b, uint16(pairs[i].(int)))
		b = append(b, value...)
		b = append(b, make([]byte, -len(b)&3)...)
	}
	return b
}

// A chain of nftables that drops what is forwarded drops it from its first
// packet on, before anybody has told the program.
func TestFiltersHoldAtOnce(t *testing.T) {
	b := newBench(t)
	r, n0, _ := crossing(b)
	b.poll("the fast path", func() bool { return b.isFast(r, n0, "10.0.0.3") })
	ns, err := b.host.Open(r.Key())
	b.check(err)
	defer ns.Close()
	table := attributes(unix.NFTA_TABLE_NAME, "t")
	be := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	chain := attributes(unix.NFTA_CHAIN_TABLE, "t", unix.NFTA_CHAIN_NAME, "c",
		unix.NFTA_CHAIN_HOOK|unix.NLA_F_NESTED, attributes(unix.NFTA_HOOK_HOOKNUM, be(unix.NF_INET_FORWARD), unix.NFTA_HOOK_PRIORITY, be(0)),
		unix.NFTA_CHAIN_POLICY, be(0), unix.NFTA_CHAIN_TYPE, "filter") // policy drop
	b.part.Close() // nobody tells the program
	err = kernel.In(ns, func() error {
		if err := nft(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, table); err != nil {
			return err
		}
		return nft(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, chain)
	})
	if err != nil {
		if _, missing := os.Stat("/proc/net/nf_conntrack"); missing != nil {
			t.Skipf("no nftables here: %v", err)
		}
		t.Fatal(err)
	}
	if b.pings(n0, "10.0.0.3") {
		t.Error("a dropped packet is answered")
	}
	b.has(r) // an agent comes
	b.poll("fall-back", func() bool { return strings.Contains(b.path(r).Why, "nftables") })
	b.check(kernel.In(ns, func() error { return nft(unix.NFT_MSG_DELTABLE, 0, table) }))
	b.poll("the fast path", func() bool { return b.isFast(r, n0, "10.0.0.3") })
}
