//! The scripted peer that ships with the product.
