// Meters measures what passes a meter of 1 Mbit/s to 1 Gbit/s with a burst of 10 ms,
// on both datapaths and Open vSwitch: UDP at twice the rate, and TCP. All are up at
// once and measured in turn.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"sublet/bench/harness"
	"sublet/bench/openflow/bed"
	"sublet/openflow/of13"
)

var (
	rounds  = flag.Int("rounds", 3, "rounds, interleaved")
	window  = flag.Duration("window", 3*time.Second, "of each measurement, behind a second that does not count")
	burst   = flag.Duration("burst", 10*time.Millisecond, "of meters: their rate for this long")
	mbit    = flag.String("mbit", "1,10,100,1000", "rates of meters, Mbit/s")
	hold    = flag.Duration("hold", 0, "most time that frames wait which a meter of Sublet's would drop; 0: it drops them")
	payload = 1400 // bytes of a datagram
)

// Frames have more bytes than iperf3 counts: 42 of a datagram's headers, 66 of a segment's.
const datagram, segment, most = 42, 66, 1448

func main() { harness.Main("openflow/meters", run) }

func run(ctx context.Context, exe string) error {
	b, err := bed.New(exe)
	if err != nil {
		return err
	}
	defer b.Close()
	b.Hold = *hold
	var switches []*bed.Switch
	for _, kind := range []bed.Kind{bed.Kernel, bed.Process, bed.OVS} {
		s, err := b.Add(ctx, kind)
		if err != nil {
			fmt.Fprintf(os.Stderr, "left out: %v\n", err)
			continue
		}
		if err := prepare(ctx, s); err != nil {
			return err
		}
		switches = append(switches, s)
	}
	fmt.Printf("%s; %d rounds of %v, burst %v, frames of Sublet's wait up to %v\n\n", harness.Machine(), *rounds, *window, *burst, *hold)
	t := harness.Table{Head: []string{"meter, Mbit/s", "switch", "UDP, % of it", "TCP, % of it"}}
	for _, word := range strings.Split(*mbit, ",") {
		rate, err := strconv.Atoi(word)
		if err != nil || rate <= 0 {
			return fmt.Errorf("-mbit: %q is no rate in Mbit/s, such as 100", word)
		}
		if err := measure(ctx, &t, switches, rate); err != nil {
			return err
		}
	}
	t.Print(os.Stdout)
	return nil
}

// prepare turns segmentation off, so that meters see the frames that are counted.
func prepare(ctx context.Context, s *bed.Switch) error {
	for station := range 2 {
		if out, err := s.Command(ctx, station, "ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil
}

func measure(ctx context.Context, t *harness.Table, switches []*bed.Switch, rate int) error {
	udp, tcp := make(map[string]harness.Samples), make(map[string]harness.Samples)
	for range *rounds {
		for _, s := range switches {
			for _, over := range []struct {
				protocol uint64
				to       map[string]harness.Samples
				args     []string
				bytes    float64
			}{
				{17, udp, []string{"-u", "-b", strconv.Itoa(2*rate) + "M", "-l", strconv.Itoa(payload)}, float64(payload+datagram) / float64(payload)},
				{6, tcp, []string{"-C", "cubic"}, float64(most+segment) / most},
			} {
				if err := meter(ctx, s, rate, over.protocol); err != nil {
					return fmt.Errorf("%s: %w", s.Name, err)
				}
				got, err := iperf(ctx, s, over.args...)
				if err != nil {
					return fmt.Errorf("%s, %d Mbit/s: %w", s.Name, rate, err)
				}
				over.to[s.Name] = append(over.to[s.Name], 100*got*over.bytes/(float64(rate)*1e6))
			}
		}
	}
	for _, s := range switches {
		t.Add(rate, s.Name, udp[s.Name].Format("%.1f"), tcp[s.Name].Format("%.1f"))
	}
	return nil
}

// meter has the frames of a protocol from station 0 meet one.
func meter(ctx context.Context, s *bed.Switch, mbit int, protocol uint64) error {
	kbit := uint32(mbit) * 1000
	m := &of13.MeterMod{Flags: of13.MeterKBPS | of13.MeterBurst, Meter: 1, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: kbit, Burst: uint32(float64(kbit) * burst.Seconds())}}}
	metered := bed.Entry(2, []of13.Field{of13.Exact(of13.InPort, 1), of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, protocol)}, of13.Output(2))
	metered.Instructions = append([]of13.Instruction{{Type: of13.InstructionMeter, Meter: 1}}, metered.Instructions...)
	there := bed.Entry(1, []of13.Field{of13.Exact(of13.InPort, 1)}, of13.Output(2))
	back := bed.Entry(1, []of13.Field{of13.Exact(of13.InPort, 2)}, of13.Output(1))
	if err := s.Replace(ctx, nil); err != nil {
		return err
	}
	return s.Do(&of13.MeterMod{Command: of13.CommandDelete, Meter: of13.MeterAll}, m, metered, there, back)
}

// iperf is what arrives at station 1, in bits of payload per second.
func iperf(ctx context.Context, s *bed.Switch, args ...string) (rate float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, *window+20*time.Second)
	defer cancel()
	server := s.Command(ctx, 1, "iperf3", "-s", "-1")
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ended(server.Wait(), ctx)) }()
	client := append([]string{"iperf3", "-c", "10.0.0.2", "-J", "-O", "1", "-t", fmt.Sprintf("%.0f", window.Seconds())}, args...)
	var report struct {
		Error string
		End   struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	for try := 0; ; try++ { // the server may not listen yet
		out, _ := s.Command(ctx, 0, client...).Output()
		if err := json.Unmarshal(out, &report); err != nil {
			return 0, fmt.Errorf("iperf3: %w", err)
		}
		if report.Error == "" || try == 20 || !strings.Contains(report.Error, "refused") {
			break
		}
		report.Error = ""
		time.Sleep(100 * time.Millisecond)
	}
	if report.Error != "" {
		return 0, errors.New(report.Error)
	}
	return report.End.Received.BitsPerSecond, nil
}

func ended(err error, ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
