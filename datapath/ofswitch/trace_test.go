package ofswitch

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
)

// Who asks is told what becomes of a packet, and what is not asked well is an error.
func TestTraceIsTold(t *testing.T) { onBoth(t, traceIsTold) }

func traceIsTold(t *testing.T, inKernel bool) {
	far := wires(t)
	c := running(t, inKernel)
	ask := func(port uint32, frame []byte) *of13.MultipartRequest {
		return &of13.MultipartRequest{
			Kind: of13.MultipartExperimenter, Experimenter: channel.Experimenter, ExpType: channel.KindTrace, Data: append(binary.BigEndian.AppendUint32(nil, port), frame...),
		}
	}
	c.send(output(3, of13.Exact(of13.InPort, 1)), ask(1, frameOf(0x88, 0xb5)))
	var told channel.Trace
	if err := json.Unmarshal(c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Data, &told); err != nil {
		t.Fatal(err)
	}
	if len(told.Steps) != 2 || told.Steps[0].Match != "priority=1,in_port=1" || told.Steps[0].Actions != "output:3" || told.Steps[1].Number != 3 ||
		len(told.Actions) != 1 || told.Actions[0] != "output:3" {
		t.Errorf("%+v", told)
	}
	if got := arrives(far[2], 0); got != nil {
		t.Errorf("the packet was sent: %x", got)
	}
	for _, request := range []*of13.MultipartRequest{ask(9, frameOf(0)), ask(0, nil)} {
		c.send(request)
		c.want(of13.TypeError)
	}
}
