// Package scriptmods lists the modules that policies can require.
//
// [All] is the explicit list: a module is a value in it, made from the server that the policy configures. A program that
// wants fewer or more modules makes its own list of the same values.
package scriptmods
