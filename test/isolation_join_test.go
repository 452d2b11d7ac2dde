package test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	product "sublet/lab"
)

// relay stands between a machine that joined and its place to join, and keeps what
// the machine sends.
type relay struct {
	near, far *net.UDPConn
	mu        sync.Mutex
	kept      [][]byte
}

// relayed is a relay at a port of the Internet of a lab.
func (l *lab) relayed(at, to string) *relay {
	l.t.Helper()
	r := &relay{}
	within(l.t, product.OutsideNamespace(labName(l.run)), func() (err error) {
		address, err := net.ResolveUDPAddr("udp4", at)
		if err != nil {
			return err
		}
		if r.near, err = net.ListenUDP("udp4", address); err != nil {
			return err
		}
		r.far, err = dialUDP(to)
		return err
	})
	l.t.Cleanup(func() { r.near.Close(); r.far.Close() })
	go r.carry()
	return r
}

func dialUDP(to string) (*net.UDPConn, error) {
	address, err := net.ResolveUDPAddr("udp4", to)
	if err != nil {
		return nil, err
	}
	return net.DialUDP("udp4", nil, address)
}

func (r *relay) carry() {
	heard := make(chan net.Addr, 1)
	go func() {
		from := <-heard
		for b := make([]byte, 2048); ; {
			n, err := r.far.Read(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = r.near.WriteTo(b[:n], from)
			}
		}
	}()
	for b := make([]byte, 2048); ; {
		n, from, err := r.near.ReadFrom(b)
		if err != nil {
			return
		}
		select {
		case heard <- from:
		default:
		}
		r.mu.Lock()
		r.kept = append(r.kept, bytes.Clone(b[:n]))
		r.mu.Unlock()
		_, _ = r.far.Write(b[:n])
	}
}

// sent is what the machine sent until now.
func (r *relay) sent() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.kept)
}

// Who sees all that a machine sends, and sends it again from elsewhere, or anything
// else, neither gets an answer nor takes the machine's place; who floods its port
// does not end it.
func TestSoakJoinIsNotTakenOver(t *testing.T) {
	t.Parallel()
	l := newLab(t, joinSubstrate)
	l.up(joinRequest("office", "20Mbit"))
	l.settled()
	web := l.networkAddress("web")
	settings := joinSettings(l.must("join", "office", "--node", "laptop"))
	place := settings["Endpoint"]
	settings["Endpoint"] = product.OutsideAddress.String() + ":5555"
	r := l.relayed(settings["Endpoint"], place)
	m := l.outsider(settings)
	m.joins(web)

	var stranger *net.UDPConn
	within(t, product.OutsideNamespace(labName(l.run)), func() (err error) {
		stranger, err = dialUDP(place)
		return err
	})
	defer stranger.Close()
	kept := r.sent()
	if !slices.ContainsFunc(kept, func(b []byte) bool { return len(b) == 148 && b[0] == 1 }) || len(kept) < 3 {
		t.Fatalf("no handshake and no data among %d packets that were kept", len(kept))
	}
	for range 3 {
		for _, packet := range kept {
			_, err := stranger.Write(packet)
			need(t, err)
		}
	}
	answered := make([]byte, 2048)
	need(t, stranger.SetReadDeadline(time.Now().Add(time.Second)))
	if n, err := stranger.Read(answered); err == nil {
		t.Errorf("who repeats packets is answered: % x", answered[:min(n, 16)])
	}
	eventually(t, 10*time.Second, func() error { return m.ping(web) })

	// A port that gets more packets than it can look at asks for proof of the address
	// that they come from, and goes on.
	for i := range 20_000 {
		packet := make([]byte, []int{148, 92, 64, 32, 1, 0, 1400}[i%7])
		_, _ = rand.Read(packet)
		if len(packet) > 4 {
			copy(packet, []byte{byte(1 + i%4), 0, 0, 0})
		}
		_, _ = stranger.Write(packet)
	}
	eventually(t, 20*time.Second, func() error {
		if err := m.ping(web); err != nil {
			return fmt.Errorf("after a flood: %w", err)
		}
		return nil
	})
	l.must("join", "office", "--node", "laptop", "--revoke")
	for _, packet := range r.sent() {
		_, _ = stranger.Write(packet)
	}
	eventually(t, 10*time.Second, func() error {
		if m.ping(web) == nil {
			return errors.New("who was shut out reaches the network")
		}
		return nil
	})
	l.must("down", "office")
}
