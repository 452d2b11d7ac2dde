package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sublet/measure"
)

// sender is the beginning of a flow: a socket for datagrams, one for pings,
// and, for one phase, TCP streams.
type sender struct {
	flow flow
	run  uint64
	udp  int
	ping int
	port uint16 // that frames come from, which ping keeps

	conns []*net.TCPConn
}

// openSender makes a flow's sender, without streams.
func openSender(run uint64, f flow) (*sender, error) {
	s := &sender{flow: f, run: run, udp: -1, ping: -1}
	var err error
	if f.Frames != 0 {
		s.udp, s.ping, s.port, err = frameSender(f)
		return s, err
	}
	if s.udp, err = connected(f, f.Ports.UDP); err != nil {
		return nil, err
	}
	if s.ping, err = connected(f, f.Ports.Ping); err != nil {
		return nil, errors.Join(err, unix.Close(s.udp))
	}
	return s, nil
}

// connected opens a datagram socket to a port of the peer.
func connected(f flow, port uint16) (int, error) {
	fd, _, err := udpSocket(f, 0)
	if err != nil {
		return -1, err
	}
	if err := connectUDP(fd, f.Peer, port); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// connect makes all streams, at the same time, or says why one could not be made.
func (s *sender) connect(ctx context.Context) error {
	conns, errs := make([]*net.TCPConn, s.flow.Streams), make([]error, s.flow.Streams)
	var dialing sync.WaitGroup
	for i := range conns {
		dialing.Go(func() { conns[i], errs[i] = dialTCP(ctx, s.run, s.flow) })
	}
	dialing.Wait()
	for _, conn := range conns {
		if conn != nil {
			s.conns = append(s.conns, conn)
		}
	}
	for _, err := range errs {
		if err != nil {
			return err // one is enough: the rest is likely to say the same
		}
	}
	return nil
}

// hangUp closes the streams.
func (s *sender) hangUp() {
	for _, conn := range s.conns {
		conn.Close()
	}
	s.conns = nil
}

// pings measures round trips.
func (s *sender) pings(ctx context.Context, epoch uint32, interval, length time.Duration) (*roundTrip, error) {
	if interval <= 0 {
		return nil, fmt.Errorf("ping by %s: no interval", s.flow.Interface)
	}
	trip := ping(ctx, s.ping, header{run: s.run, flow: uint32(s.flow.ID), epoch: epoch}, interval, length)
	return &trip, nil
}

// flood fills all streams for the command's length and measures round trips
// and acknowledgements during its window.
func (s *sender) flood(ctx context.Context, c command, f flow, g *figure) (err error) {
	until := time.Now().Add(c.length())
	var pouring sync.WaitGroup
	for _, conn := range s.conns {
		limitPace(conn, f.Pace*float64(f.Rate)/float64(len(s.conns)), s.flow.MTU)
		pouring.Go(func() { pour(conn, until, unsentLimit(f)/len(s.conns)) })
	}
	defer pouring.Wait()
	select {
	case <-time.After(c.WarmUp):
		begin, before := time.Now(), counts(s.conns)
		g.RTT, err = s.pings(ctx, c.Epoch, f.Interval, c.Window)
		g.Acks = measure.Rate(float64(counts(s.conns).Since(before).Headers), time.Since(begin))
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unsentLimit is 50 ms of the flow's rate, enough for a sender that has to
// wait for a processor, and at least two of the largest segments.
func unsentLimit(f flow) int {
	const least, most = 128 << 10, 16 << 20
	return int(min(max(f.Rate.BytesPerSecond()/20, least), most))
}

// sendLoad sends datagrams for the command's length.
func (s *sender) sendLoad(ctx context.Context, c command, f flow, g *figure) error {
	s.flow.Rate, s.flow.Lag = f.Rate, f.Lag
	b, err := newPacedLoad(s.udp, s.run, c.Epoch, s.flow)
	if err != nil {
		return err
	}
	if s.flow.Frames != 0 {
		link, err := linkHeader(s.flow)
		if err != nil {
			return err
		}
		b.frames(link, newFrame(s.flow, s.port))
	}
	done := make(chan error)
	go func() { done <- b.run(ctx, c.length()) }() // on a thread of its own, which ends with it
	err = <-done
	g.Sent, g.Late = b.header.seq, b.late
	return err
}
