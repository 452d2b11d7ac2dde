package openflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/text"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

const (
	flowsTime = time.Minute // in which all entries of a switch come
	mostFlows = 256 << 20   // bytes of them as OpenFlow writes them: what is in them is up to controllers
)

// Flows hands on the entries of a switch as they come, table by table, until one is not
// taken. So many may come as there are: none is kept here.
func (p *Part) Flows(ctx context.Context, key string, take func(report.Flow) error) error {
	if _, _, ok := plan.ParseSwitchNamespace(key, vnet.SwitchOpenFlow); !ok {
		return fmt.Errorf("%s is no OpenFlow switch", key)
	}
	ctx, cancel := context.WithTimeout(ctx, flowsTime)
	defer cancel()
	late := time.AfterFunc(askTime, cancel)
	defer late.Stop()
	c, done, err := p.ask(ctx, key)
	if err != nil {
		return fmt.Errorf("ask switch %s: %w", key, err)
	}
	defer done()
	err = c.Each(&of13.MultipartRequest{
		Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny},
	}, func(part of13.Message) error {
		late.Reset(askTime)
		if c.Got() > mostFlows {
			return fmt.Errorf("its entries take more than %d MiB", mostFlows>>20)
		}
		for _, f := range part.(*of13.MultipartReply).Flows {
			if err := take(flow(f)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ask switch %s: %w", key, err)
	}
	return nil
}

// Status is what a switch tells of itself.
func (p *Part) Status(key string) (status report.OpenFlowStatus, err error) {
	if _, _, ok := plan.ParseSwitchNamespace(key, vnet.SwitchOpenFlow); !ok {
		return status, fmt.Errorf("%s is no OpenFlow switch", key)
	}
	c, done, err := p.askSoon(key)
	if err != nil {
		return status, fmt.Errorf("ask switch %s: %w", key, err)
	}
	defer done()
	if err := c.Status(&status); err != nil {
		return status, fmt.Errorf("ask switch %s: %w", key, err)
	}
	if p.Core != nil {
		if core, used, ok := p.Core(key); ok {
			status.Core, status.Used = &core, used
		}
	}
	return status, nil
}

// Trace says what would become of a frame that a port of a switch received.
func (p *Part) Trace(key string, port uint32, frame []byte) (t report.FlowTrace, err error) {
	if _, _, ok := plan.ParseSwitchNamespace(key, vnet.SwitchOpenFlow); !ok {
		return t, fmt.Errorf("%s is no OpenFlow switch", key)
	}
	c, done, err := p.askSoon(key)
	if err != nil {
		return t, fmt.Errorf("ask switch %s: %w", key, err)
	}
	defer done()
	told, err := c.Trace(port, frame)
	if errors.Is(err, of13.BadRequestBadPort) {
		return t, fmt.Errorf("in_port %d: %w at this switch now: state another one", port, report.ErrNoPort)
	}
	if err != nil {
		return t, fmt.Errorf("ask switch %s about a packet of port %d: %w", key, port, err)
	}
	t = report.FlowTrace{Actions: told.Actions, Like: told.Like, Cause: told.Cause}
	for _, step := range told.Steps {
		t.Steps = append(t.Steps, report.FlowStep(step))
	}
	return t, nil
}

func flow(f of13.FlowStats) report.Flow {
	return report.Flow{
		Table: int(f.Table), Priority: int(f.Priority), Cookie: f.Cookie, Packets: f.Packets, Bytes: f.Bytes, Idle: int(f.Idle), Hard: int(f.Hard),
		Age:   int64(f.Life.Seconds)*int64(time.Second) + int64(f.Life.Nanos),
		Flags: text.Flags(f.Flags), Match: text.Match(f.Priority, f.Match.Fields), Actions: text.Actions(f.Instructions),
	}
}

// askSoon is ask of a process that has askTime.
func (p *Part) askSoon(key string) (*channel.Client, func(), error) {
	ctx, cancel := context.WithTimeout(p.life, askTime)
	c, done, err := p.ask(ctx, key)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return c, func() { done(); cancel() }, nil
}
