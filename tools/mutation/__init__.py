"""Mutation testing of the package: does a test fail when the code is wrong in one small way?

targets.py      the parts of the package that are mutated, and the tests that concern each
operators.py    the mutants of a source file: a statement dropped, a condition negated, one too many, ...
live.py         puts a mutant in place of the functions that are loaded
plugin.py       runs the tests that execute a mutated line, each mutant in a forked process
shared_java.py  one Java process of Spark for the tests of all mutants
__main__.py     the command

mutmut 3.8 and cosmic-ray 8.7 were looked at first. Neither drops a statement, negates a whole condition or swaps
arguments, and mutmut skips decorated functions; cosmic-ray starts pytest anew for each mutant and runs all tests.
"""
