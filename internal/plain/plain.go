// Package plain puts what Go's libraries say of errors into words for people who
// know no Go: what is wrong, and what to write instead.
package plain

import (
	"regexp"
	"sync"
)

// quoted is text as %q writes it.
const quoted = `"(?:[^"\\]|\\.)*"`

type rule struct {
	form  string
	words string // as regexp.ReplaceAllString takes them
}

// rules are tried in order, each wherever its form is in a text.
var rules = []rule{
	// values
	{`(?:time: )?(?:invalid|missing unit in|unknown unit ` + quoted + ` in) duration (` + quoted + `)`, `$1 is not a duration such as 90s, 2h or 7d`},
	{`parsing time (` + quoted + `)(?: as ` + quoted + `)?: (?:cannot parse ` + quoted + ` as ` + quoted + `|extra text: ` + quoted + `|[a-z]+ out of range)`, `$1 is no time such as 2027-03-01T08:00:00Z`},
	{`strconv\.ParseBool: parsing (` + quoted + `): invalid syntax`, `$1 is neither true nor false`},
	{`strconv\.\w+: parsing (` + quoted + `): invalid syntax`, `$1 is no number`},
	{`strconv\.\w+: parsing (` + quoted + `): value out of range`, `$1 is out of range`},
	{`(?:netip\.)?ParsePrefix\((` + quoted + `)\): [^;\n]*`, `$1 is no prefix such as 10.0.0.0/24`},
	{`(?:netip\.)?ParseAddr(?:Port)?\((` + quoted + `)\): [^;\n]*`, `$1 is no address such as 10.0.0.1`},
	{`invalid CIDR address: (\S+)`, `$1 is no prefix such as 10.0.0.0/24`},
	{`address (\S+): invalid MAC address`, `$1 is no hardware address such as 02:00:00:00:00:01`},
	{`encoding/hex: (?:invalid byte: .*|odd length hex string)`, `it is not written in hexadecimal digits, two for a byte`},
	{`illegal base64 data at input byte \d+`, `it is not written in base64`},
	{`parse error on line \d+, column \d+: (?:bare|extraneous or missing) " in (?:non-)?quoted-field`, `a quotation mark has no second one`},
	{`parse (` + quoted + `): (?:net/url: )?[^;\n]*`, `$1 is no address such as https://host:port/path`},
	// texts
	{`json: cannot unmarshal (\w+)(?: [^ ]+)? into Go struct field (?:\w+\.)?(\S+) of type \S+`, `$2 cannot be a JSON $1`},
	{`json: cannot unmarshal (\w+)(?: [^ ]+)? into Go value of type \S+`, `it cannot be a JSON $1`},
	{`json: unknown field (` + quoted + `)`, `unknown field $1`},
	{`invalid character ('(?:[^'\\]|\\.)*'|` + quoted + `) (?:looking for|after|in|exiting) [a-z ]*(?::value pair)?(?: \(expecting '.'\))?`, `it is no JSON, because of $1`},
	{`unexpected end of JSON input`, `it is no JSON: it ends early`},
	{`(^|[\s:(])yaml: (?:unmarshal errors:\s*)?line (\d+): cannot unmarshal !!(\w+) .*? into \S+`, `${1}line $2 cannot be a $3`},
	{`(^|[\s:(])yaml: (?:unmarshal errors:\s*)?`, `${1}it is no YAML: `},
	// connections
	{`\b(?:Get|Post|Put|Delete|Head|Patch) "?https?://[^" ]*"?: `, ``},
	{`dial \w+: lookup (\S+?)(?: on \S+)?: no such host`, `no machine is called $1`},
	{`lookup (\S+?)(?: on \S+)?: no such host`, `no machine is called $1`},
	{`lookup (\S+?)(?: on \S+)?: Temporary failure in name resolution|lookup (\S+?)(?: on \S+)?: server misbehaving`, `the name $1$2 cannot be looked up now`},
	{`(?:dial|listen) \w+: address (\S+?): missing port in address`, `$1 has no port: write HOST:PORT`},
	{`(?:dial|listen) \w+: address (\S+?): too many colons in address`, `$1 has too many colons: write [ADDRESS]:PORT`},
	{`address (\S+?): missing port in address`, `$1 has no port: write HOST:PORT`},
	{`address (\S+?): too many colons in address`, `$1 has too many colons: write [ADDRESS]:PORT`},
	{`(?:dial|listen) \w+: (?:lookup \w+/(\S+): unknown port|address (\S+?): invalid port)`, `$1$2 is no port`},
	{`lookup \w+/(\S+): unknown port|address (\S+?): invalid port`, `$1$2 is no port`},
	{`dial unix (\S+): connect: (?:no such file or directory|connection refused)`, `nothing listens at $1`},
	{`dial \w+ (\S+): connect: connection refused`, `nothing answers at $1`},
	{`dial \w+ (\S+): (?:connect: connection timed out|i/o timeout)`, `$1 does not answer`},
	{`dial \w+ (\S+): (?:connect: )?`, `reach $1: `},
	{`dial \w+: `, `connect: `},
	{`listen \w+ (\S+): bind: address already in use`, `$1 is in use by another program`},
	{`listen \w+ (\S+): bind: cannot assign requested address`, `$1 is no address of this machine`},
	{`listen \w+ (\S+): (?:bind: )?`, `listen at $1: `},
	{`(?:read|write) \w+ \S+->\S+: (?:(?:read|write): )?(?:connection reset by peer|broken pipe)`, `the other side closed the connection`},
	{`(?:read|write) \w+ \S+->\S+: (?:(?:read|write): )?`, ``},
	{`use of closed network connection`, `the connection was closed`},
	{`net/http: (?:TLS handshake timeout|timeout awaiting response headers)|i/o timeout`, `no answer came in time`},
	{`(?:net/http: HTTP/1\.x transport connection broken: )?malformed HTTP (?:response|status code|version) ` + quoted, `the other side does not speak HTTP`},
	{`http: server gave HTTP response to HTTPS client|tls: first record does not look like a TLS handshake`, `the other side does not speak TLS`},
	{`unexpected EOF`, `it ended early`},
	{`: EOF\b`, `: it ended early`},
	{`^EOF$`, `it ended early`},
	// certificates
	{`(?:tls: failed to verify certificate: )?x509: certificate signed by unknown authority(?: \(possibly because of .*\))?`, `the certificate is not signed by the authority that --ca names`},
	{`(?:tls: failed to verify certificate: )?x509: certificate has expired or is not yet valid: (?:current time \S+ is after (\S+))`, `the certificate ended at $1`},
	{`(?:tls: failed to verify certificate: )?x509: certificate has expired or is not yet valid: (?:current time \S+ is before (\S+))`, `the certificate is valid from $1 on`},
	{`(?:tls: failed to verify certificate: )?x509: certificate is valid for (.*), not (\S+)`, `the certificate is for $1, not for $2`},
	{`(?:tls: failed to verify certificate: )?x509: (?:cannot validate certificate for (\S+) because it doesn't contain any IP SANs|certificate is not valid for any names, but wanted to match (\S+))`, `the certificate does not name $1$2: make one that has it among its subject alternative names`},
	{`(?:tls: failed to verify certificate: )?x509: certificate relies on legacy Common Name field, use SANs instead`, `the certificate has its host as common name alone: make one that has it among its subject alternative names`},
	{`(?:tls: failed to verify certificate: )?x509: `, `certificate: `},
	{`remote error: tls: certificate required`, `the other side asks for a certificate (--cert and --key) or a token (--token)`},
	{`remote error: tls: (?:unknown certificate authority|bad certificate|unknown certificate|expired certificate|revoked certificate|unsupported certificate)`, `the other side does not take this certificate: it must be signed by its authority, and valid now`},
	{`remote error: tls: `, `the other side ended TLS: `},
	{`tls: failed to find any PEM data in (\w+) input`, `it holds no $1 in PEM`},
	{`tls: (?:private key (?:type )?does not match public key(?: type)?)`, `the key is not that of the certificate`},
	{`(^|[\s(])tls: `, `${1}TLS: `},
	// programs and files
	{`exec: (` + quoted + `): executable file not found in \$PATH`, `the program $1 is not installed here`},
	{`exec: (` + quoted + `): `, `program $1: `},
	{`fork/exec (\S+): `, `start $1: `},
	{`invalid argument`, `the system takes no such value`},
	{`context canceled`, `interrupted`},
	{`context deadline exceeded`, `the time for it is over`},
}

var forms = sync.OnceValue(func() (list []*regexp.Regexp) {
	for _, r := range rules {
		list = append(list, regexp.MustCompile(r.form))
	}
	return list
})

// Text puts into plain words what of a text is Go's.
func Text(s string) string {
	for i, form := range forms() {
		s = form.ReplaceAllString(s, rules[i].words)
	}
	return s
}
