"""The coordinate tree: one branch-and-bound tree, evaluated in two semirings.

`instance` lays a problem out as arrays, `bound` bounds a node, `minimise` searches it for the certified optimum.
"""
