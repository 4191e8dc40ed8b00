package dns

import "strconv"

// Type is a resource record type, with the numbers of RFC 1035 section 3.2.2.
type Type uint16

// The types a Resolver answers.
const (
	TypeA     Type = 1
	TypeCNAME Type = 5
	TypePTR   Type = 12
	TypeMX    Type = 15
	TypeTXT   Type = 16
	TypeAAAA  Type = 28 // RFC 3596
	TypeTLSA  Type = 52 // RFC 6698
)

// String returns the mnemonic, or "TYPE" and the number (RFC 3597 section 5).
func (t Type) String() string {
	switch t {
	case TypeA:
		return "A"
	case TypeCNAME:
		return "CNAME"
	case TypePTR:
		return "PTR"
	case TypeMX:
		return "MX"
	case TypeTXT:
		return "TXT"
	case TypeAAAA:
		return "AAAA"
	case TypeTLSA:
		return "TLSA"
	}
	return "TYPE" + strconv.Itoa(int(t))
}

// served says whether answers of type t can be expressed as a Record.
func (t Type) served() bool {
	switch t {
	case TypeA, TypeCNAME, TypePTR, TypeMX, TypeTXT, TypeAAAA, TypeTLSA:
		return true
	}
	return false
}
