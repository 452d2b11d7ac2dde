package vxrouter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// pollState looks for what the kernel does not tell of: packet sockets and
// netfilter. It runs every second.
func pollState() (off string, err error) {
	sockets, err := os.ReadFile("/proc/thread-self/net/packet")
	if err != nil {
		return "", err
	}
	if bytes.Count(sockets, []byte("\n")) > 1 {
		return "packets are captured in it (a packet socket is open)", nil
	}
	tables, _ := os.ReadFile("/proc/thread-self/net/ip_tables_names") // no such file: no such module
	if len(tables) > 0 {
		return "iptables has tables in it: " + strings.Join(strings.Fields(string(tables)), ", "), nil
	}
	n, err := filterTables()
	if n > 0 {
		off = "nftables has tables in it"
	}
	return off, err
}

// filterTables counts the tables of nftables in the calling thread's
// namespace; a kernel without nftables has none.
func filterTables() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return 0, nil
	}
	defer unix.Close(fd)
	const getTable = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETTABLE
	m := make([]byte, unix.NLMSG_HDRLEN+4) // struct nfgenmsg, all families
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], getTable)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("ask for tables of nftables: %w", err)
	}
	answer := make([]byte, 16<<10)
	n, _, err := unix.Recvfrom(fd, answer, 0) // the first part says enough
	if err != nil {
		return 0, fmt.Errorf("read tables of nftables: %w", err)
	}
	if n < unix.NLMSG_HDRLEN {
		return 0, nil
	}
	switch binary.NativeEndian.Uint16(answer[4:]) {
	case unix.NLMSG_DONE, unix.NLMSG_ERROR: // an error: no such protocol
		return 0, nil
	}
	return 1, nil
}
