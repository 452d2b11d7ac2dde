package vxdl

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// wrap puts lines into an infrastructure of two nodes a and b; the first line
// of body is line 5.
func wrap(body string) string {
	return `<description xmlns="http://www.vxdlforum.org/vxdl"><virtualInfrastructure>
<id>net</id><totalTime>PT1H</totalTime>
<vNode><id>a</id></vNode>
<vNode><id>b</id></vNode>
` + body + "\n</virtualInfrastructure></description>"
}

// linkOf is a link with something inside; it begins on line 5.
func linkOf(inside string) string {
	return wrap("<vLink><id>l</id><source>a</source><destination>b</destination>\n" + inside + "\n</vLink>")
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "1:1: document: is empty"},
		{"no XML", "network: x", "1:1: document: text outside the root"},
		{"other root", "<html/>", "1:1: html: is no VXDL root"},
		{"no namespace", "<description/>", "1:1: description: is no VXDL root"},
		{"open", "<description xmlns='http://www.vxdlforum.org/vxdl'>\n<a>", "2:4: document: not XML: unexpected EOF"},
		{"crossed", "<a>\n<b></a>", "2:8: document: not XML: element <b> closed by </a>"},
		{"doctype", "<?xml version='1.0'?>\n<!DOCTYPE x [<!ENTITY e 'x'>]>\n<x>&e;</x>", "2:1: document: DOCTYPE and other declarations are not accepted"},
		{"entity", wrap("<vNode><id>&e;</id></vNode>"), "5:15: document: not XML: invalid character entity &e;"},
		{"encoding", "<?xml version='1.0' encoding='latin1'?><a/>", "1:40: document: not XML: xml: encoding \"latin1\""},
		{"two roots", "<a/>\n<b/>", "2:1: b: is a second root"},
		{"text behind", wrap("") + "\nmore", "6:39: document: text outside the root"},
		{"two ids", wrap("<vNode><id>c</id>\n<id>d</id></vNode>"), "6:1: id: stands twice in vNode c, first on line 5: keep one"},
		{"two bandwidths", linkOf("<bandwidth/>\n<bandwidth/>"), "7:1: bandwidth: stands twice in vLink l, first on line 6"},
		{"same id", wrap("<vRouter><id>a</id></vRouter>"), "5:1: vRouter a: the id stands twice, first on line 3"},
		{"same link id", wrap("<vLink><id>l</id><source>a</source><destination>b</destination></vLink>\n<vLink><id>l</id><source>a</source><destination>b</destination></vLink>"), "6:1: vLink l: the id stands twice, first on line 5"},
		{"no id", wrap("<vNode/>"), "5:1: vNode: has no id: add one"},
		{"no infrastructure", `<description xmlns="http://www.vxdlforum.org/vxdl"/>`, "1:1: description: has no virtualInfrastructure"},
		{"no unit", linkOf("<bandwidth><forward><simple>10</simple></forward></bandwidth>"), "6:12: forward: has no unit: add one of bps, Kbps, Mbps or Gbps"},
		{"odd unit", linkOf("<bandwidth><forward><simple>10</simple><unit>MBps</unit></forward></bandwidth>"), ""},
		{"bytes as unit", linkOf("<bandwidth><forward><simple>10</simple><unit>MB</unit></forward></bandwidth>"), `6:40: unit: "MB" is not a unit of forward: use bps, Kbps, Mbps or Gbps`},
		{"latency unit", linkOf("<latency><simple>10</simple><unit>min</unit></latency>"), `6:29: unit: "min" is not a unit of latency: use ns, us, ms or s`},
		{"memory unit", wrap("<vNode><id>c</id><memory><simple>1</simple></memory></vNode>"), "5:18: memory: has no unit: add one of B, KB,"},
		{"core unit", wrap("<vNode><id>c</id><cpu><cores><simple>1</simple><unit>GHz</unit></cores></cpu></vNode>"), `5:48: unit: "GHz" is not a unit of cores: use no unit`},
		{"number", linkOf("<latency><simple>fast</simple><unit>ms</unit></latency>"), `6:10: simple: "fast" is not a number of at least 0`},
		{"negative", linkOf("<latency><simple>-1</simple><unit>ms</unit></latency>"), `6:10: simple: "-1" is not a number of at least 0`},
		{"not a number", linkOf("<latency><simple>NaN</simple><unit>ms</unit></latency>"), `6:10: simple: "NaN" is not a number of at least 0`},
		{"infinite", linkOf("<bandwidth><forward><simple>INF</simple><unit>bps</unit></forward></bandwidth>"), `6:21: simple: "INF" is too large`},
		{"zero", linkOf("<bandwidth><forward><simple>0</simple><unit>bps</unit></forward></bandwidth>"), "6:21: simple: a maximum of zero lets nothing through"},
		{"little", linkOf("<bandwidth><forward><simple>1</simple><unit>Kbps</unit></forward></bandwidth>"), "5:1: vLink l: links[0].min: 1kbit is too little to shape"},
		{"crossed bounds", linkOf("<bandwidth><forward><unit>bps</unit><interval><min>2</min><max>1</max></interval></forward></bandwidth>"), "6:37: interval: min is above max"},
		{"no value", linkOf("<latency><unit>ms</unit></latency>"), "6:1: latency: states no value"},
		{"two values", linkOf("<latency><unit>ms</unit><simple>1</simple>\n<simple>2</simple></latency>"), "7:1: simple: is a second value of latency, first on line 6"},
		{"scale", linkOf("<latency><unit>ms</unit><scale><min>1</min></scale></latency>"), "6:25: scale: needs min, max and step"},
		{"no source", wrap("<vLink><id>l</id><destination>b</destination></vLink>"), "5:1: vLink l: has no source"},
		{"unknown end", wrap("<vLink><id>l</id><source>aa</source><destination>b</destination></vLink>"), `5:18: source: no resource "aa": did you mean "a"?`},
		{"loop", wrap("<vLink><id>l</id><source>b</source><destination>b</destination></vLink>"), `5:1: vLink l: links[0].ends[1]: both ends are "b"`},
		{"load balancer", wrap("<vAccessPoint><id>p</id><loadBalancer/></vAccessPoint>"), "5:25: loadBalancer: this element does not say which nodes it is over"},
		{"exclusivity", wrap("<vNode><id>c</id><exclusivity>maybe</exclusivity></vNode>"), `5:18: exclusivity: "maybe" is neither true nor false`},
		{"start", wrap("<startDate>soon</startDate>"), `5:1: startDate: "soon" is not a time such as`},
		{"host tag", wrap("<vNode><id>c</id><tag><key>sublet:address</key><value>x</value></tag></vNode>"), `5:1: vNode c: tag sublet:address: "x" is not an address`},
		{"event without value", linkOf("<bandwidth><forward><unit>bps</unit><event>e</event></forward></bandwidth></vLink><timeline><event><id>e</id><delay>0</delay></event></timeline><vLink><id>m</id><source>a</source><destination>b</destination>"), "6:37: event: states no value"},
		{"unknown event", linkOf("<bandwidth><forward><unit>bps</unit><event>e</event><simple>1</simple></forward></bandwidth>"), `6:37: event: "e" is no event of the timeline`},
		{"event without delay", wrap("<timeline><event><id>e</id></event></timeline>"), "5:11: event e: needs an id and a delay"},
		{"odd delay", wrap("<timeline><event><id>e</id><delay>1h</delay></event></timeline>"), `5:28: delay: "1h" is not a number of seconds`},
		{"same delay", wrap("<timeline><event><id>e</id><delay>5</delay></event>\n<event><id>f</id><delay>5</delay></event></timeline>"), "6:1: event f: has the delay of the event on line 5"},
		{"late event", wrap("<timeline><event><id>e</id><delay>3600</delay></event></timeline>"), "5:11: event e: stages[0].after: 1h is not before the window ends"},
		{"cardinality", wrap("<vArray><id>x</id><cardinality>0</cardinality><vNode><id>n</id></vNode></vArray>"), `5:1: vArray x: cardinality "0" is not a number from 1 to 5000`},
		{"large array", wrap("<vArray><id>x</id><cardinality>5000</cardinality><vNode><id>n</id></vNode></vArray>"), "5:50: vNode n: the document has more than 5000 nodes and routers"},
		{"two arrays", wrap("<vArray><id>x</id><cardinality>2</cardinality><vNode><id>n</id></vNode></vArray><vArray><id>y</id><cardinality>2</cardinality><vNode><id>m</id></vNode></vArray>\n<vLink><id>l</id><source>x</source><destination>y</destination></vLink>"), "6:1: vLink l: joins two arrays"},
		{"ambiguous array", wrap("<vArray><id>x</id><cardinality>2</cardinality><vNode><id>n</id></vNode><vNode><id>m</id></vNode></vArray>\n<vLink><id>l</id><source>x</source><destination>a</destination></vLink>"), `6:18: source: "x" is an array of several resources`},
		{"deep", strings.Repeat("<a>", MaxDepth+1), "1:193: a: is nested deeper than 64"},
		{"large", strings.Repeat(" ", MaxSize+1), "1:1: document: has 4194305 bytes"},
		{"many", wrap(strings.Repeat("<a/>", MaxElements)), "is one of more than 500000 elements"},
		{"attributes", "<a " + strings.Repeat("b='' ", MaxAttributes+1) + "/>", "1:1: a: has more than 32 attributes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			_, _, err := Parse("f", []byte(c.text), false)
			if c.want == "" {
				// Letters' case means nothing: MBps is Mbps.
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			var input *vnet.InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant f:%s", err, c.want)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT4H": 4 * time.Hour, "P10D": 240 * time.Hour, "P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond, "PT0S": 0, "PT90M": 90 * time.Minute,
	} {
		t.Run(text, func(t *testing.T) {
			if got, err := parseDuration(text); err != nil || got != want {
				t.Errorf("parseDuration(%q) = %v, %v, want %v", text, got, err, want)
			}
		})
	}
	for _, text := range []string{"", "P", "PT", "P1DT", "P1Y", "P1M", "-PT1H", "PT1H1H", "4H", "PT999999999H", "P3651D", "PT1.5H"} {
		t.Run(text, func(t *testing.T) {
			if got, err := parseDuration(text); err == nil {
				t.Errorf("parseDuration(%q) = %v, want an error", text, got)
			}
		})
	}
}

// What is unknown is an error when strict, and else a note with its XML.
func TestUnknown(t *testing.T) {
	for _, c := range []struct{ text, note, strict string }{
		{wrap("<vHouse><id>x</id></vHouse>"), "5:1: vHouse x: unknown here in virtualInfrastructure net, ignored", "5:1: vHouse x: is unknown here: virtualInfrastructure net may hold id, location"},
		{wrap("<vNode xmlns='urn:x'/>"), "5:1: vNode: of another namespace in virtualInfrastructure net, ignored", "5:1: vNode: is of another namespace"},
		{wrap("<vNode colour='red'><id>c</id></vNode>"), "5:1: vNode c: attribute colour is unknown here, ignored", "5:1: vNode c: has an attribute colour"},
		{wrap("stray"), `1:52: virtualInfrastructure net: text "stray" beside the elements is ignored`, `1:52: virtualInfrastructure net: holds text "stray"`},
		{wrap("<user>net<b/></user>"), "5:10: b: unknown here in user, ignored", "5:10: b: is unknown here: user may hold text"},
	} {
		t.Run(c.text, func(t *testing.T) {
			_, notes, err := Parse("f", []byte(c.text), false)
			if err != nil || len(notes) == 0 || notes[0].String() != c.note {
				t.Errorf("got %v, %v, want the note %s", notes, err, c.note)
			}
			if _, _, err := Parse("f", []byte(c.text), true); err == nil || !strings.HasPrefix(err.Error(), "f:"+c.strict) {
				t.Errorf("strict: got %v, want f:%s", err, c.strict)
			}
		})
	}
}
