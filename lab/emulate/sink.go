package emulate

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"

	"sublet/datapath/kernel"
)

// Datagrams begin with what they are part of.
const (
	magic      = 0x5b1f10e5
	headLength = 17 // magic, run, whether it counts; host, flow, number
	sinkPort   = 9009
)

// sink counts the datagrams that a host gets.
type sink struct {
	conn *net.UDPConn
	want atomic.Uint32 // run whose datagrams count
	got  atomic.Uint64
	each atomic.Pointer[arrival]
}

// arrival is told of every datagram that counts.
type arrival func(from, flow int, number uint32)

func newSink(ns *os.File) (*sink, error) {
	s := &sink{}
	err := kernel.In(ns, func() (err error) {
		s.conn, err = net.ListenUDP("udp4", &net.UDPAddr{Port: sinkPort})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := s.conn.SetReadBuffer(1 << 20); err != nil {
		s.close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	go s.read()
	return s, nil
}

func (s *sink) read() {
	b := make([]byte, 2048)
	for {
		n, _, err := s.conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return // closed
		}
		if run, counts := parse(b[:n]); counts && run == s.want.Load() {
			s.got.Add(1)
			if each := s.each.Load(); each != nil {
				(*each)(int(binary.BigEndian.Uint16(b[9:])), int(binary.BigEndian.Uint16(b[11:])), binary.BigEndian.Uint32(b[13:]))
			}
		}
	}
}

// parse reads a datagram's beginning; a stranger's counts for nothing.
func parse(b []byte) (run uint32, counts bool) {
	if len(b) < headLength || binary.BigEndian.Uint32(b) != magic {
		return 0, false
	}
	return binary.BigEndian.Uint32(b[4:]), b[8] == 1
}

// reset makes a run's datagrams count, from none.
func (s *sink) reset(run uint32) {
	s.want.Store(run)
	s.got.Store(0)
}

// trace tells of every datagram; nil: no more.
func (s *sink) trace(each arrival) {
	if each == nil {
		s.each.Store(nil)
		return
	}
	s.each.Store(&each)
}

func (s *sink) close() { s.conn.Close() }

// dial opens a socket of a host, one for each flow.
func (h *host) dial(from, to netip.Addr) (*net.UDPConn, error) {
	var c *net.UDPConn
	err := kernel.In(h.at.Home(), func() (err error) {
		c, err = net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, sinkPort)))
		return err
	})
	return c, err
}
