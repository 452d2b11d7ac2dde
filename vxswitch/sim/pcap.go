package sim

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// packetReader is what readers of both formats do.
type packetReader interface {
	ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
	LinkType() layers.LinkType
}

// ReadPcap reads a pcap or pcapng file: times since its first packet, lengths
// on the wire, flows.
func ReadPcap(r io.Reader) ([]Frame, error) {
	in := bufio.NewReader(r)
	reader, err := openPcap(in)
	if err != nil {
		return nil, fmt.Errorf("no pcap or pcapng file: %w", err)
	}
	list := []Frame{}
	var first, last time.Time
	for {
		data, info, err := reader.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err == nil && len(list) == maxTrace {
			err = fmt.Errorf("more than %d: cut the file", maxTrace)
		}
		if err == nil && (info.Length < 1 || info.Length > 65535) {
			err = fmt.Errorf("%d bytes long", info.Length)
		}
		if err != nil {
			return nil, fmt.Errorf("packet %d: %w", len(list)+1, err)
		}
		if len(list) == 0 {
			first, last = info.Timestamp, info.Timestamp
		}
		if info.Timestamp.After(last) { // captures of several queues are not quite in order
			last = info.Timestamp
		}
		list = append(list, Frame{At: last.Sub(first), Flow: flow(data, reader.LinkType()), Size: int32(info.Length)})
	}
}

func openPcap(in *bufio.Reader) (packetReader, error) {
	magic, err := in.Peek(4)
	if err != nil {
		return nil, err
	}
	if string(magic) == "\x0a\x0d\x0d\x0a" {
		return pcapgo.NewNgReader(in, pcapgo.DefaultNgReaderOptions)
	}
	return pcapgo.NewReader(in)
}

// flow hashes addresses and ports, the same in both directions.
func flow(data []byte, link layers.LinkType) uint64 {
	p := gopacket.NewPacket(data, link, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	var h uint64
	if n := p.NetworkLayer(); n != nil {
		h = n.NetworkFlow().FastHash()
	} else if l := p.LinkLayer(); l != nil {
		h = l.LinkFlow().FastHash()
	}
	if t := p.TransportLayer(); t != nil {
		h ^= t.TransportFlow().FastHash() * 0x9e3779b97f4a7c15
	}
	return spread(h)
}

// spread makes all 64 bits depend on all (the finalizer of SplitMix64).
func spread(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
