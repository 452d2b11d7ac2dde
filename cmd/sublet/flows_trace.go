package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
	"sublet/openflow/text"
	"sublet/report"
)

func (a *app) flowsTrace() *cobra.Command {
	return a.noun(&cobra.Command{
		Use:   "trace NAME/SWITCH FIELDS [HEX]",
		Short: "Show what would become of a packet at an OpenFlow switch",
		Long: `Show what would become of a packet at a switch of kind openflow: the entry of each
table that it meets, groups, meters, and where it leaves as what. FIELDS are those of
ovs-appctl ofproto/trace, with in_port; what is not stated is 0. HEX is a whole frame
in hexadecimal digits, of which FIELDS then state the port alone. Nothing is sent or
counted, and meters let the packet through.`,
		Example: `  sublet flows trace learning/s1 in_port=1,dl_dst=02:00:00:00:00:02
  sublet flows trace learning/s1 in_port=1,tcp,nw_dst=10.0.0.1,tp_dst=80 -o json`,
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: a.completePart(openFlowSwitches),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			port, frame, err := tracedPacket(args[1], args[2:])
			if err != nil {
				return badInput{err}
			}
			client, id, name, err := a.part(c.Context(), args[0], "SWITCH")
			if err != nil {
				return err
			}
			t, err := client.Trace(c.Context(), id, name, port, frame)
			if err != nil {
				return err
			}
			if a.format != "table" {
				return a.printAll(t, "", nil, "")
			}
			return writeTrace(a.out, t)
		},
	})
}

// tracedPacket is a packet that is written as fields, or as a frame and its port.
func tracedPacket(words string, digits []string) (port uint32, frame []byte, err error) {
	fields, err := text.Fields(words)
	if err != nil {
		return 0, nil, err
	}
	at := slices.IndexFunc(fields, func(f of13.Field) bool { return f.ID == of13.InPort })
	if at < 0 {
		return 0, nil, errors.New("in_port is missing: state the port that receives the packet, such as in_port=1")
	}
	port = uint32(fields[at].Value.Lo)
	if len(digits) == 0 {
		frame, err = pipeline.Frame(fields)
		return port, frame, err
	}
	if len(fields) > 1 {
		return 0, nil, errors.New("a frame states its fields itself: leave out all but in_port")
	}
	if frame, err = hex.DecodeString(digits[0]); err != nil {
		return 0, nil, fmt.Errorf("the frame is no hexadecimal number: %w", err)
	}
	return port, frame, nil
}

// deepest is how deep steps are shown, whatever a switch says.
const deepest = 64

// writeTrace writes it about as ovs-appctl ofproto/trace does.
func writeTrace(w io.Writer, t report.FlowTrace) error {
	var b strings.Builder
	for _, s := range t.Steps {
		b.WriteString(strings.Repeat("    ", max(0, min(s.Depth, deepest))) + traceLine(s) + "\n")
	}
	actions := strings.Join(t.Actions, ",")
	if actions == "" {
		actions = "drop"
	}
	fmt.Fprintf(&b, "packets like it: %s\ndatapath actions: %s\n", t.Like, actions)
	if t.Cause != "" {
		fmt.Fprintf(&b, "done by the switch's process: %s\n", t.Cause)
	}
	_, err := io.WriteString(w, harmless(b.String()))
	return err
}

// traceLine is one thing that becomes of a packet.
func traceLine(s report.FlowStep) string {
	switch s.Kind {
	case "table":
		if s.Missed {
			return fmt.Sprintf("%2d. no entry matches", s.Number)
		}
		match := s.Match
		if match == "" {
			match = "any packet"
		}
		return fmt.Sprintf("%2d. %s, cookie 0x%x\n    %s", s.Number, match, s.Cookie, s.Actions)
	case "output":
		if s.Queue != 0 {
			return fmt.Sprintf("    -> leaves by port %s, queue %d", text.Port(s.Number), s.Queue)
		}
		return "    -> leaves by port " + text.Port(s.Number)
	case "blocked":
		return fmt.Sprintf("    -> not by port %s, which is down or not there", text.Port(s.Number))
	case "refused":
		return fmt.Sprintf("    -> port %s takes no packets, or none so short", text.Port(s.Number))
	case "controller":
		return "    -> goes to controllers"
	case "normal":
		return "    -> forwarded as by a learning switch"
	}
	return fmt.Sprintf("    -> %s %d", s.Kind, s.Number)
}
