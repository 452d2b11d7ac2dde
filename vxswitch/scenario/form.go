package scenario

// The form of a scenario. Field order is the order in which people write; the
// descriptions are the published schema's.

type form struct {
	Scenario        string                `yaml:"scenario" jsonschema_description:"Name."`
	About           string                `yaml:"about,omitempty" jsonschema_description:"What it shows."`
	Duration        span                  `yaml:"duration" jsonschema_description:"Simulated time in which packets arrive, such as 1s; the warm-up is part of it."`
	Warmup          span                  `yaml:"warmup,omitempty" jsonschema_description:"Packets that arrive before it do not count. Default: 0s."`
	Drain           *bool                 `yaml:"drain,omitempty" jsonschema_description:"Go on after the duration until the switch is empty. Default: true."`
	Seed            *whole                `yaml:"seed,omitempty" jsonschema_description:"Of the first run; each next run has the next number. Default: 1."`
	Runs            *int                  `yaml:"runs,omitempty" jsonschema_description:"Independent runs; more than one give confidence intervals. Default: 1." jsonschema:"minimum=1,maximum=10000"`
	Switch          hosting               `yaml:"switch" jsonschema_description:"The physical switch."`
	VirtualSwitches []virtualSwitch       `yaml:"virtual_switches" jsonschema_description:"Who leases what of it." jsonschema:"minItems=1"`
	Traffic         []traffic             `yaml:"traffic" jsonschema_description:"What arrives." jsonschema:"minItems=1"`
	Split           *splitting            `yaml:"split,omitempty" jsonschema_description:"Carry what one virtual switch receives at one input over several outputs to a second switch, and put it back into order there."`
	Vary            []map[string][]string `yaml:"vary,omitempty" jsonschema_description:"Axes of an experiment, for example {switch.crosspoint: [3KB, 6KB]}. Fields of one axis change together; axes are combined, the last fastest." jsonschema:"maxItems=4"`
	Expect          []expectation         `yaml:"expect,omitempty" jsonschema_description:"What must come out; exit code 4 if it does not."`
	Plots           []plot                `yaml:"plots,omitempty" jsonschema_description:"Figures drawn by --plot."`
}

type hosting struct {
	Ports      int    `yaml:"ports" jsonschema_description:"N: inputs as well as outputs, counted from 1." jsonschema:"minimum=1,maximum=256"`
	Rate       rate   `yaml:"rate" jsonschema_description:"Of each port and direction, such as 1Gbit."`
	Crosspoint size   `yaml:"crosspoint" jsonschema_description:"Buffer of each crosspoint, such as 96KB."`
	Scheduler  string `yaml:"scheduler,omitempty" jsonschema_description:"Which virtual switch is next at an output. drr: deficit round robin by quantum; sp: strict priority by priority, equal ones in turn." jsonschema:"enum=drr,enum=sp,enum=rr,enum=fcfs,enum=lqf,default=drr"`
	Capped     bool   `yaml:"capped,omitempty" jsonschema_description:"Hold each virtual switch to its rate at outputs. Default: false, it may use what others leave."`
	Sharing    string `yaml:"sharing,omitempty" jsonschema_description:"strict: a virtual crosspoint buffer has its own bytes; flexible: it may borrow what others lend." jsonschema:"enum=strict,enum=flexible,default=strict"`
	MaxFrame   size   `yaml:"max_frame,omitempty" jsonschema_description:"Longer frames are dropped. Default: 1514B, or the longest of the traffic."`
}

type virtualSwitch struct {
	Name            string   `yaml:"name" jsonschema_description:"Unique." jsonschema:"minLength=1,maxLength=40"`
	Count           int      `yaml:"count,omitempty" jsonschema_description:"So many alike, named NAME-1 and so on. Default: one, named NAME." jsonschema:"minimum=1,maximum=1024"`
	Ports           []int    `yaml:"ports,omitempty" jsonschema_description:"Of the physical switch. Default: all."`
	Rate            rate     `yaml:"rate,omitempty" jsonschema_description:"Capacity of each of its ports, per direction. Default: the port's rate by the number of virtual switches."`
	Police          bool     `yaml:"police,omitempty" jsonschema_description:"Drop what arrives at an input above the rate. Default: false."`
	Buffer          size     `yaml:"buffer,omitempty" jsonschema_description:"At each crosspoint. Default: the crosspoint's by the number of virtual switches."`
	Lend            fraction `yaml:"lend,omitempty" jsonschema_description:"Part of the buffer lent while idle, such as 0.5 or 50%; for flexible sharing. Default: 0."`
	Quantum         size     `yaml:"quantum,omitempty" jsonschema_description:"Its weight at drr among virtual switches: bytes a turn. Default: by rate."`
	Priority        int      `yaml:"priority,omitempty" jsonschema_description:"Its place at sp among virtual switches, 0 first. Default: 0." jsonschema:"minimum=0,maximum=63"`
	Scheduler       string   `yaml:"scheduler,omitempty" jsonschema_description:"Which of its inputs is next at an output." jsonschema:"enum=drr,enum=sp,enum=rr,enum=fcfs,enum=lqf,default=drr"`
	InputQuantum    size     `yaml:"input_quantum,omitempty" jsonschema_description:"Weight of each input at its own drr. Default: 1500B."`
	InputPriorities []int    `yaml:"input_priorities,omitempty" jsonschema_description:"Of its ports, in their order, at its own sp; 0 first. Default: all 0."`
	Manager         string   `yaml:"manager,omitempty" jsonschema_description:"What its buffers drop. tail-drop: what does not fit; red and codel: also before. Settings follow a colon, as in red:min=6000,max=18000,p=0.1 or codel:target=1ms,interval=20ms." jsonschema:"pattern=^(tail-drop|red|codel)(:.*)?$,default=tail-drop"`
	Blocked         [][2]int `yaml:"blocked,omitempty" jsonschema_description:"Pairs [input, output] that may not talk."`
}

type traffic struct {
	Inputs          []int               `yaml:"inputs,omitempty" jsonschema_description:"Each gets a stream of its own. Default: all."`
	Outputs         []int               `yaml:"outputs,omitempty" jsonschema_description:"A packet goes to each with the same probability. Default: all."`
	VirtualSwitches map[string]fraction `yaml:"virtual_switches,omitempty" jsonschema_description:"Weights by name (of a group: of each of it): a packet belongs to each with this part of the sum. Default: all alike."`
	Load            *fraction           `yaml:"load,omitempty" jsonschema_description:"Mean rate of each stream as a part of the port's rate, such as 0.9 or 1/32."`
	Rate            *rate               `yaml:"rate,omitempty" jsonschema_description:"Instead of load: mean rate of each stream."`
	Arrivals        string              `yaml:"arrivals,omitempty" jsonschema_description:"mmpp: Markov-modulated Poisson process of two states; poisson; constant: equal gaps." jsonschema:"enum=mmpp,enum=poisson,enum=constant,default=poisson"`
	Peak            fraction            `yaml:"peak,omitempty" jsonschema_description:"mmpp: rate in the first state by the mean. Default: 2."`
	Low             *fraction           `yaml:"low,omitempty" jsonschema_description:"mmpp: rate in the second state by the mean, 0 for on/off. Default: 0.2."`
	Burst           fraction            `yaml:"burst,omitempty" jsonschema_description:"mmpp: mean packets in one stay in the first state. Default: 10."`
	ArrivalRates    []fraction          `yaml:"arrival_rates,omitempty" jsonschema_description:"mmpp: instead of load, peak, low and burst: packets per second in both states (lambda)." jsonschema:"minItems=2,maxItems=2"`
	TransitionRates []fraction          `yaml:"transition_rates,omitempty" jsonschema_description:"mmpp: how often per second both states are left (omega)." jsonschema:"minItems=2,maxItems=2"`
	Size            *size               `yaml:"size,omitempty" jsonschema_description:"Of every frame. Default: sizes."`
	Sizes           *sizes              `yaml:"sizes,omitempty" jsonschema_description:"Two uniform modes. Default: half 64 to 100, half 1350 to 1500 bytes."`
	Start           span                `yaml:"start,omitempty" jsonschema_description:"Nothing before it. Default: 0s."`
	Stop            span                `yaml:"stop,omitempty" jsonschema_description:"Nothing from then on. Default: the duration."`
	Trace           string              `yaml:"trace,omitempty" jsonschema_description:"Instead of all the above: JSON lines of the form --departures and --arrivals write (docs/schema/packet.schema.json). Path from the scenario's folder."`
	Pcap            string              `yaml:"pcap,omitempty" jsonschema_description:"Instead of load and sizes: times and lengths of the packets of a pcap or pcapng file; a flow goes to one output."`
}

type sizes struct {
	Small [2]int    `yaml:"small" jsonschema_description:"Bytes from, to."`
	Large [2]int    `yaml:"large" jsonschema_description:"Bytes from, to."`
	Part  *fraction `yaml:"part,omitempty" jsonschema_description:"Of frames that are small. Default: 0.5."`
}

type splitting struct {
	VirtualSwitch string `yaml:"virtual_switch" jsonschema_description:"Whose packets."`
	Input         int    `yaml:"input" jsonschema_description:"Of the first switch." jsonschema:"minimum=1"`
	Rate          rate   `yaml:"rate,omitempty" jsonschema_description:"Of the output of the second switch. Default: the port's rate."`
	Stall         *span  `yaml:"stall,omitempty" jsonschema_description:"Longest wait for a number that does not come. Default: 100ms."`
	Paths         []path `yaml:"paths" jsonschema_description:"Outputs of the first switch, inputs of the second." jsonschema:"minItems=1,maxItems=16"`
}

type path struct {
	Output int  `yaml:"output" jsonschema_description:"Of the first switch." jsonschema:"minimum=1"`
	Weight int  `yaml:"weight,omitempty" jsonschema_description:"Its part of the bytes. Default: 1." jsonschema:"minimum=1,maximum=65536"`
	Delay  span `yaml:"delay,omitempty" jsonschema_description:"From the end of transmission to arrival at the second switch. Default: 0s."`
	Buffer size `yaml:"buffer" jsonschema_description:"At the second switch, for packets that wait."`
}

type expectation struct {
	Says    string              `yaml:"says" jsonschema_description:"The statement, in words."`
	Source  string              `yaml:"source,omitempty" jsonschema_description:"Where it is made."`
	Of      string              `yaml:"of,omitempty" jsonschema_description:"total, split, a virtual switch, or each: every virtual switch. Default: total."`
	Measure string              `yaml:"measure" jsonschema_description:"A figure of the output, such as throughput_packets."`
	Where   map[string][]string `yaml:"where,omitempty" jsonschema_description:"Only points with one of these values. Default: all."`
	Buffer  *size               `yaml:"buffer_from,omitempty" jsonschema_description:"Only where the virtual crosspoint buffers have at least this size."`
	Minus   map[string]string   `yaml:"minus,omitempty" jsonschema_description:"Take the difference to the point that has these values instead."`
	Divide  bool                `yaml:"relative,omitempty" jsonschema_description:"With minus: divide the difference by the other point's value."`
	AtLeast *number             `yaml:"at_least,omitempty"`
	AtMost  *number             `yaml:"at_most,omitempty"`
	Above   *number             `yaml:"above,omitempty"`
	Below   *number             `yaml:"below,omitempty"`
}

type plot struct {
	Title   string   `yaml:"title,omitempty"`
	X       string   `yaml:"x" jsonschema_description:"A field of vary."`
	Measure string   `yaml:"measure" jsonschema_description:"A figure of the output."`
	Of      []string `yaml:"of,omitempty" jsonschema_description:"Whose: total, split or virtual switches. Default: total."`
	LogX    bool     `yaml:"log_x,omitempty" jsonschema_description:"Logarithmic axis."`
}
