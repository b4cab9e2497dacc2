//! Nodes grouped by their functions.

/// If there are fewer nodes than this part of all functions, sorting takes less time than a list of
/// the functions.
const FEW: usize = 16;

/// Sorts nodes by function; each node comes with the number of its function. Nodes of one function
/// keep their order.
pub(super) fn by_function<T: Copy + Default>(mut nodes: Vec<(u32, T)>, functions: usize) -> Vec<(u32, T)> {
    if nodes.len() < functions / FEW {
        nodes.sort_by_key(|node| node.0);
        return nodes;
    }
    let mut places = vec![0_u32; functions + 1];
    nodes.iter().for_each(|node| places[node.0 as usize + 1] += 1);
    for function in 1..places.len() {
        places[function] += places[function - 1];
    }
    let mut ordered = vec![<(u32, T)>::default(); nodes.len()];
    for node in nodes {
        let place = &mut places[node.0 as usize];
        ordered[*place as usize] = node;
        *place += 1;
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_function_stand_together_in_their_order_however_many_there_are() {
        for (functions, count) in [(1_000, 3), (1_000, 500), (2, 100), (1, 0)] {
            let nodes: Vec<(u32, u32)> = (0..count).map(|node| (node * 7 % functions, node)).collect();
            let mut expected = nodes.clone();
            expected.sort_unstable();
            assert_eq!(by_function(nodes, functions as usize), expected, "{count} of {functions}");
        }
    }
}
