package channel

import (
	"net"
	"testing"
	"time"

	"sublet/openflow/of13"
)

// An answer that does not end is given up.
func TestAnswersAreBounded(t *testing.T) {
	ours, theirs := net.Pipe()
	over := make(chan struct{})
	go func() {
		defer close(over)
		part := &of13.MultipartReply{Kind: of13.MultipartFlow, Flags: of13.MultipartMore, Flows: make([]of13.FlowStats, 500)}
		hello, _ := of13.Append(nil, 1, &of13.Hello{Bitmap: 1 << of13.Version})
		endless, err := of13.Append(nil, 2, part)
		if err != nil {
			t.Error(err)
		}
		read := make([]byte, 1<<10)
		for _, answer := range [][]byte{hello, endless} {
			theirs.Read(read)
			theirs.Write(answer)
		}
		for err == nil {
			_, err = theirs.Write(endless)
		}
	}()
	ours.SetDeadline(time.Now().Add(20 * time.Second))
	c, err := NewClient(ours)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := c.Ask(&of13.MultipartRequest{Kind: of13.MultipartFlow})
	if err == nil || err.Error() != "its answer is longer than 16 MiB" {
		t.Errorf("%d parts, %v", len(parts), err)
	}
	ours.Close()
	<-over
}
