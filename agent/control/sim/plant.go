// Package sim is a model of service chains on processors with quotas, and the
// scenarios in which laws of control are compared. It is a function of its
// arguments: what is random comes from a seed.
//
// Functions take packets from a queue, each at a cost, within what their quota
// gives in a tick of 10 ms. The kernel gives some percent more or less than a
// quota says, by its size; in the first period of a new one it
// gives two thirds of it in addition, as was measured here with control groups of
// version 1. Costs and offered rates have noise in every interval of 100 ms.
package sim

import (
	"math"

	"sublet/agent/control"
	"sublet/internal/splitmix"
)

// What the model assumes of a machine.
const (
	tick       = 0.01 // seconds
	Interval   = 0.1  // seconds between samples
	quotaOff   = 0.03 // error of what a quota gives, at most
	quotaWaves = 5    // of that error between no quota and a core
	costNoise  = 0.02 // standard deviation of a cost in an interval
	loadNoise  = 0.02 // likewise of what is offered
	stolen     = 0.02 // of a quota that others take in an interval, at most
	queueTime  = 0.02 // seconds of the promised rate that a queue holds
	queueMin   = 64   // packets that it holds at least
	period     = 0.02 // seconds, of quotas
)

// Function of the model. Functions of time are of seconds since the beginning.
type Function struct {
	Name    string
	Cost    control.Profile
	Slower  func(t float64) float64 // factor of the cost; nil: 1
	Lets    func(t float64) float64 // part of the packets it lets through; nil: all
	Polls   bool                    // it uses up its quota whatever it has to do
	Profile control.Profile         // what the controller is told; nothing: it is not
}

// Chain of the model.
type Chain struct {
	Rate    float64 // promised, bit/s
	Via     []int
	Offered func(t float64) float64 // bit/s; nil: a fifth more than promised
	Size    func(t float64) float64 // mean bytes of packets
	Elastic bool                    // it offers little more than is carried, as TCP does
}

// at is a function of time, with what it is when there is none.
func at(f func(float64) float64, t, otherwise float64) float64 {
	if f == nil {
		return otherwise
	}
	return f(t)
}

// plant is the state of the model.
type plant struct {
	functions []Function
	chains    []Chain
	random    splitmix.Source

	now           float64
	share         []float64
	phase         []float64   // of the error of quotas
	extra         []float64   // core seconds of the first period of a quota
	queue         [][]float64 // packets, by function and chain
	noise, steals []float64   // of functions, in this interval
	load          []float64   // of chains, in this interval
	window        []float64   // what an elastic chain offers

	entered []control.Count
	samples []control.Sample
	carried []float64 // bits of each chain in this interval, as they entered
}

func newPlant(functions []Function, chains []Chain, shares []float64, seed uint64) *plant {
	n := len(functions)
	p := &plant{
		functions: functions, chains: chains, random: splitmix.Source(seed),
		share: append([]float64(nil), shares...), phase: make([]float64, n), extra: make([]float64, n),
		queue: make([][]float64, n), noise: make([]float64, n), steals: make([]float64, n),
		load: make([]float64, len(chains)), window: make([]float64, len(chains)),
	}
	for i := range functions {
		p.queue[i] = make([]float64, len(chains))
		p.phase[i] = 2 * math.Pi * p.random.Float()
	}
	for j, ch := range chains {
		p.window[j] = ch.Rate
	}
	return p
}

// normal is about a normal deviate.
func (p *plant) normal() float64 {
	sum := -6.0
	for range 12 {
		sum += p.random.Float()
	}
	return sum
}

// off is by how much a quota is wrong: by its size, smoothly, as was measured.
func (p *plant) off(i int) float64 {
	return quotaOff * math.Sin(p.phase[i]+2*math.Pi*quotaWaves*p.share[i])
}

// set gives functions quotas.
func (p *plant) set(shares []float64) {
	for i, share := range shares {
		if share != p.share[i] {
			p.share[i], p.extra[i] = share, share*period*2/3
		}
	}
}

// interval runs the model for one.
func (p *plant) interval() {
	p.begin()
	for range int(math.Round(Interval / tick)) {
		p.tick()
		p.now += tick
	}
}

func (p *plant) begin() {
	p.entered, p.carried = make([]control.Count, len(p.chains)), make([]float64, len(p.chains))
	p.samples = make([]control.Sample, len(p.functions))
	for i := range p.functions {
		p.samples[i] = control.Sample{Arrived: make([]control.Count, len(p.chains)), Served: make([]control.Count, len(p.chains))}
		p.noise[i] = 1 + costNoise*p.normal()
		p.steals[i] = stolen * p.random.Float()
	}
	for j := range p.chains {
		p.load[j] = 1 + loadNoise*p.normal()
	}
}

// tick moves packets through the functions, in the order of each chain.
func (p *plant) tick() {
	time := make([]float64, len(p.functions)) // core seconds left
	for i, share := range p.share {
		time[i] = share*(1+p.off(i)-p.steals[i])*tick + p.extra[i]
		p.extra[i] = 0
		if p.functions[i].Polls {
			p.samples[i].Used += time[i]
		}
	}
	served := make([][]float64, len(p.functions))
	for i := range p.functions {
		served[i] = make([]float64, len(p.chains))
	}
	for j, ch := range p.chains {
		packets := p.offered(j) * tick / 8 / ch.Size(p.now)
		p.entered[j].Packets += packets
		p.entered[j].Bytes += packets * ch.Size(p.now)
		p.arrive(ch.Via[0], j, packets)
	}
	for i := range p.functions { // functions stand in an order that all chains follow
		p.serve(i, time[i], served[i])
		for j, packets := range served[i] {
			p.forward(i, j, packets)
		}
	}
}

// offered is what a chain's senders send now, in bit/s.
func (p *plant) offered(j int) float64 {
	ch := p.chains[j]
	if ch.Elastic {
		return p.window[j] * p.load[j]
	}
	return at(ch.Offered, p.now, 1.2*ch.Rate) * p.load[j]
}

// arrive puts packets into a queue, as far as there is room.
func (p *plant) arrive(i, j int, packets float64) {
	ch, size := p.chains[j], p.chains[j].Size(p.now)
	s := &p.samples[i]
	s.Arrived[j].Packets += packets
	s.Arrived[j].Bytes += packets * size
	room := max(0, max(queueMin, queueTime*ch.Rate/8/size)-p.queue[i][j])
	if packets > room {
		s.Dropped += packets - room
		packets = room
	}
	p.queue[i][j] += packets
}

// serve takes packets out of a function's queues, of each chain in proportion.
func (p *plant) serve(i int, time float64, served []float64) {
	f := p.functions[i]
	slow := at(f.Slower, p.now, 1) * p.noise[i]
	whole := 0.0
	for j, ch := range p.chains {
		whole += slow * f.Cost.Cost(p.queue[i][j], p.queue[i][j]*ch.Size(p.now))
	}
	part := 1.0
	if whole > time {
		part = time / whole
	}
	for j, ch := range p.chains {
		served[j] = part * p.queue[i][j]
		p.queue[i][j] -= served[j]
		p.samples[i].Served[j].Packets += served[j]
		p.samples[i].Served[j].Bytes += served[j] * ch.Size(p.now)
	}
	if !f.Polls {
		p.samples[i].Used += part * whole
	}
}

// forward hands packets to the next function, or counts what was carried: as it
// was before functions let only a part through.
func (p *plant) forward(i, j int, packets float64) {
	ch := p.chains[j]
	for k, at := range ch.Via {
		if at != i {
			continue
		}
		if k+1 < len(ch.Via) {
			p.arrive(ch.Via[k+1], j, packets*p.lets(i))
			return
		}
		for _, before := range ch.Via[:k] {
			packets /= p.lets(before)
		}
		bits := 8 * packets * ch.Size(p.now)
		p.carried[j] += bits
		if ch.Elastic { // towards 3 % more than is carried, within some 100 ms
			p.window[j] += 0.1 * (1.03*bits/tick - p.window[j])
			p.window[j] = max(p.window[j], 0.05*ch.Rate)
		}
	}
}

func (p *plant) lets(i int) float64 { return at(p.functions[i].Lets, p.now, 1) }

// needs is the share that each function needs for the promised rates now.
func (p *plant) needs() []float64 {
	list := make([]float64, len(p.functions))
	for _, ch := range p.chains {
		packets := ch.Rate / 8 / ch.Size(p.now)
		for _, i := range ch.Via {
			f := p.functions[i]
			list[i] += at(f.Slower, p.now, 1) * f.Cost.Cost(packets, packets*ch.Size(p.now))
			packets *= p.lets(i)
		}
	}
	return list
}
