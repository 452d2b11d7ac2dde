package ofswitch

import (
	"fmt"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
	"sublet/openflow/text"
)

// mostTraced bounds how much is told of a packet: its way may be long, and an answer
// has room for 64 KiB.
const mostTraced = 128

// trace says what would become of a frame.
func (s *Switch) trace(port uint32, frame []byte) (of13.Message, error) {
	p, err := s.tables.Explain(s.now(), port, frame)
	if err != nil {
		return nil, err
	}
	t := channel.Trace{Like: text.Match(ofctlPriority, p.Like)}
	if p.Cause != pipeline.CauseNone {
		t.Cause = p.Cause.String()
	}
	for i := range p.Seen[:min(len(p.Seen), mostTraced)] {
		t.Steps = append(t.Steps, traceStep(&p.Seen[i]))
	}
	for i := range p.Steps[:min(len(p.Steps), mostTraced)] {
		t.Actions = append(t.Actions, doneBy(&p.Steps[i]))
	}
	return t.Reply()
}

// ofctlPriority is the one that is not written.
const ofctlPriority = 32768

var seenWords = map[pipeline.What]string{
	pipeline.SeenTable: "table", pipeline.SeenMeter: "meter", pipeline.SeenGroup: "group", pipeline.SeenBucket: "bucket", pipeline.SeenOutput: "output",
	pipeline.SeenNoOutput: "blocked", pipeline.SeenController: "controller", pipeline.SeenNormal: "normal", pipeline.SeenRefused: "refused",
}

func traceStep(n *pipeline.Seen) channel.TraceStep {
	t := channel.TraceStep{Kind: seenWords[n.What], Depth: n.Depth, Number: n.Number, Queue: n.Queue}
	if n.What != pipeline.SeenTable {
		return t
	}
	t.Number, t.Missed = uint32(n.Table), n.Entry == nil
	if e := n.Entry; e != nil {
		t.Match, t.Cookie, t.Actions = shortened(text.Match(e.Priority, e.Match)), e.Cookie, shortened(text.Actions(e.Instructions))
	}
	return t
}

// shortened cuts what one entry of a controller's would fill an answer with.
func shortened(s string) string {
	const most = 400
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// doneBy is a step as ovs-ofctl writes actions.
func doneBy(s *pipeline.Step) string {
	switch s.Kind {
	case pipeline.StepOutput:
		if s.Queue != 0 {
			return fmt.Sprintf("enqueue:%s:%d", text.Port(s.Port), s.Queue)
		}
		return "output:" + text.Port(s.Port)
	case pipeline.StepSet:
		return text.Set(s.Field)
	case pipeline.StepPushVLAN:
		return text.PushVLAN(s.TPID, s.TCI)
	case pipeline.StepPopVLAN:
		return "pop_vlan"
	case pipeline.StepDecTTL:
		return fmt.Sprintf("dec_ttl(%d)", s.TTL)
	}
	return fmt.Sprintf("mod_nw_ttl:%d", s.TTL)
}
